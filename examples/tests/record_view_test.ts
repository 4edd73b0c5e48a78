import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { RecordView } from "../support/record_view.ts";
import { withFolder } from "../../tools/support/program.ts";
import type { CommittedEvent } from "../../mod.ts";
import { readView } from "./support/view.ts";

function committedEvent(n: number, recordKey: string, kind: string, payload: unknown) {
  const event = { source: "test", stream: "items", record_key: recordKey, kind, payload };
  return { event_id: `${n}`, ...event } as CommittedEvent;
}

const upserted = (n: number, key: string) => committedEvent(n, key, "upserted", { n });

test("RecordView keeps the latest payload of each record and drops deleted records", async () => {
  await withFolder((folder) => {
    const path = join(folder, "view.db");
    const view = new RecordView(path);
    assert.equal(view.position, null);
    const deleted = committedEvent(4, "b", "deleted", null);
    view.apply([upserted(1, "a"), upserted(2, "b"), upserted(3, "a"), deleted], "p4");
    view.apply([upserted(5, "c"), committedEvent(6, "c", "reviewed", { by: "x" })], "p6");
    assert.equal(view.position, "p6");
    view.close();
    assert.deepEqual(readView(path), {
      position: "p6",
      records: { "test/items/a": '{"n":3}', "test/items/c": '{"n":5}' },
    });
    return Promise.resolve();
  });
});

test("RecordView changes nothing if another process has advanced it or an event is invalid", async () => {
  await withFolder((folder) => {
    const path = join(folder, "view.db");
    const slow = new RecordView(path);
    const fast = new RecordView(path);
    fast.apply([upserted(1, "a"), upserted(2, "a")], "p2");
    assert.throws(() => slow.apply([upserted(1, "a")], "p1"), /another process/);
    const broken = { ...upserted(4, "a"), payload: undefined };
    assert.throws(() => fast.apply([upserted(3, "b"), broken], "p4"), TypeError);
    assert.equal(fast.position, "p2");
    slow.close();
    fast.close();
    assert.deepEqual(readView(path), { position: "p2", records: { "test/items/a": '{"n":2}' } });
    return Promise.resolve();
  });
});
