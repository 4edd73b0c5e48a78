/** Commits of batches that were filled before: what the disk is told, and what a crash leaves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TAIL_FILE } from "../../../src/log/storage/file_names.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { seededRandom, testSeed } from "../../../tools/support/random.ts";
import { anyOf } from "../../support/simulated_crash.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { noRoomAfter } from "../../support/storage_faults.ts";
import { openTestLog, readAll, tailOf } from "../../support/test_log.ts";
import { verifyStorage } from "../../support/verifying.ts";

const CRASHES = 40;
const EVENTS = Array.from({ length: 5 }, (_, n) => ({ payload: `${n}`.repeat(1000) }));
const LARGE = () => preparedBatch("large", { events: EVENTS });

async function openWithOne() {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  await log.append([preparedBatch("a")]);
  return { storage, log };
}

test("appendFilled() writes the lines, then the header, and syncs both once", async () => {
  const { storage, log } = await openWithOne();
  const filled = await log.fill(LARGE());
  await log.append([preparedBatch("b")]);
  const before = storage.operations.length;
  const offset = tailOf(storage.tree()).length;
  await log.appendFilled(filled);
  const operations = storage.operations.slice(before);
  assert.deepEqual(
    operations.map(({ kind, path }) => `${kind} ${path}`),
    [`write ${TAIL_FILE}`, `write ${TAIL_FILE}`, `sync ${TAIL_FILE}`],
  );
  const [lines, header] = operations;
  assert.equal(header!.position, offset);
  assert.equal(lines!.position, offset + header!.sizeBytes!);
  const events = await readAll(log.snapshot);
  assert.deepEqual(events.map((event) => event.batch_id), [
    "a",
    "b",
    ...EVENTS.map(() => "large"),
  ]);
  const ids = events.map((event) => event.event_id);
  assert.deepEqual(ids, [...ids].sort());
  await log.close();
  assert.equal((await verifyStorage(storage)).failure, null);
});

test("dropFilled() leaves nothing, and ids go on", async () => {
  const { storage, log } = await openWithOne();
  await log.fill(LARGE());
  log.dropFilled();
  const filled = await log.fill(preparedBatch("b"));
  await log.appendFilled(filled);
  await log.close();
  assert.equal((await verifyStorage(storage)).failure, null);
});

const firstSeed = testSeed();

for (const operation of ["write", "header", "sync", "none"]) {
  test(`appendFilled() is all or nothing, crash at ${operation} (SEED=${firstSeed})`, async () => {
    for (let seed = firstSeed; seed < firstSeed + CRASHES; seed++) {
      const { storage, log } = await openWithOne();
      const filled = await log.fill(LARGE());
      const crashed = Promise.withResolvers<SimulatedDisk>();
      const crash = () => crashed.resolve(storage.crash(anyOf(seededRandom(seed))));
      let writes = 0;
      storage.hook = ({ kind }) => {
        const name = kind === "write" && ++writes === 2 ? "header" : kind;
        if (name === operation) crash();
        return null;
      };
      await log.appendFilled(filled);
      if (operation === "none") crash();
      const left = await crashed.promise;
      const { log: again, entries } = await openTestLog(left);
      const batchIds = entries.map((entry) => entry.batch_id);
      const isWhole = batchIds.length === 2;
      assert.deepEqual(batchIds, isWhole ? ["a", "large"] : ["a"], `seed ${seed}`);
      if (operation === "none") assert.ok(isWhole, "what was acknowledged stays");
      if (operation === "write" || operation === "header") assert.ok(!isWhole, "no header, none");
      await again.append([preparedBatch("b")]);
      await again.close();
      assert.equal((await verifyStorage(left)).failure, null, `seed ${seed}`);
    }
  });
}

test("appendFilled() is undone when it finds no room, in its lines or for its header", async () => {
  const { storage, log } = await openWithOne();
  const before = tailOf(storage.tree());
  for (const roomBytes of [0, 1, 500, 1000, 3000]) {
    storage.hook = noRoomAfter(before.length + roomBytes);
    await assert.rejects(log.appendFilled(await log.fill(LARGE())), { name: "StorageFullError" });
    assert.deepEqual(tailOf(storage.tree()), before);
  }
  let writes = 0;
  storage.hook = ({ kind }) =>
    kind === "write" && ++writes === 2 ? { errno: "ENOSPC", writtenBytes: 20 } : null;
  await assert.rejects(log.appendFilled(await log.fill(LARGE())), { name: "StorageFullError" });
  assert.deepEqual(tailOf(storage.tree()), before);
  storage.hook = null;
  await log.appendFilled(await log.fill(LARGE()));
  await log.close();
  assert.equal((await verifyStorage(storage)).failure, null);
});
