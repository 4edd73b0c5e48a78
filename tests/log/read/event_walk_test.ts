import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { hasEvent, walkEvents } from "../../../src/log/read/event_walk.ts";
import { pendingPath } from "../../../src/log/storage/file_names.ts";
import type { LogFile } from "../../../src/log/read/snapshot.ts";
import { lineEventId } from "../../../src/log/line/stored_line.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { openTestLog, readAll, tailOf, withTail } from "../../support/test_log.ts";

/** A pending file and a tail, each larger than a read. */
async function largeLog(): Promise<{ files: readonly LogFile[]; eventIds: string[] }> {
  const events = Array.from({ length: 500 }, () => ({ payload: "x".repeat(1000) }));
  const first = new SimulatedDisk();
  const { log } = await openTestLog(first);
  await log.append([preparedBatch("a", { events })]);
  const [batch] = await log.append([preparedBatch("b", { events })]);
  const rotated = first.tree();
  const path = pendingPath((await readAll(log.snapshot))[0]!.event_id, batch!.entry.last_event_id);
  const tree = withTail(rotated, Buffer.alloc(0)).set(path, tailOf(rotated));
  const { log: second } = await openTestLog(new SimulatedDisk(tree));
  await second.append([preparedBatch("c", { events })]);
  const eventIds = (await readAll(second.snapshot)).map((event) => event.event_id);
  return { files: second.snapshot.files, eventIds };
}

async function walk(
  files: readonly LogFile[],
  after?: string,
  limit = Infinity,
): Promise<string[]> {
  const eventIds: string[] = [];
  await walkEvents(files, after, (chunk, lineStart) => {
    eventIds.push(lineEventId(chunk, lineStart));
    return eventIds.length < limit;
  });
  return eventIds;
}

test("walkEvents() visits every event in log order until it is told to stop", async () => {
  const { files, eventIds } = await largeLog();
  assert.deepEqual(await walk(files), eventIds);
  assert.deepEqual(await walk(files, undefined, 3), eventIds.slice(0, 3));
});

test("walkEvents() visits all events after an id, and few before it", async () => {
  const { files, eventIds } = await largeLog();
  for (let place = 0; place < eventIds.length; place += 97) {
    const visited = await walk(files, eventIds[place]);
    assert.deepEqual(visited.slice(-(eventIds.length - place - 1)), eventIds.slice(place + 1));
    assert.ok(visited.length < eventIds.length - place + 300);
  }
  assert.deepEqual(await walk(files, eventIds.at(-1)), []);
});

test("hasEvent() knows the ids of committed events and no others", async () => {
  const { files, eventIds } = await largeLog();
  for (let place = 0; place < eventIds.length; place += 83) {
    assert.ok(await hasEvent(files, eventIds[place]!));
  }
  const [first, last] = [eventIds[0]!, eventIds.at(-1)!];
  assert.ok(await hasEvent(files, last));
  assert.ok(await hasEvent(files, eventIds[999]!), "the last of a file");
  assert.ok(await hasEvent(files, eventIds[1000]!), "the first of a file");
  const others = [
    first.slice(0, -3) + "000",
    last.slice(0, -3) + "fff",
    "00000000-0000-7000-8000-000000000000",
    "ffffffff-ffff-7fff-bfff-ffffffffffff",
  ];
  for (const id of others) assert.ok(!await hasEvent(files, id), id);
  assert.ok(!await hasEvent([], first));
});
