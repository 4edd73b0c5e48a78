/** Batches of thousands of events are stamped in slices. The event loop runs between slices. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { BATCH_EVENTS_MAX } from "../../src/limits.ts";
import { preparedBatch } from "../support/prepared.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { joinPieces } from "../support/test_log.ts";
import { openTestService } from "../support/test_service.ts";
import { verifyStorage } from "../support/verifying.ts";

function large(batchId: string) {
  return preparedBatch(batchId, { events: Array.from({ length: BATCH_EVENTS_MAX }, () => ({})) });
}

test("append() yields to the event loop while it stamps a large batch", async () => {
  const { service } = await openTestService(new SimulatedDisk());
  await service.append(preparedBatch("a"));
  let isDone = false;
  const appending = service.append(large("b")).then(() => isDone = true);
  let replays = 0;
  for (; !isDone; replays++) {
    const page = service.replay({ after: undefined, filter: {}, limitEvents: 1 });
    assert.match(await joinPieces(page), /"batch_id":"a"/);
    await setImmediate();
  }
  await appending;
  assert.ok(replays > 1, `${replays} pages were read during the append`);
});

test("append() stamps every event of large batches in one group commit", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  const ids = ["a", "b", "c", "d"];
  const batches = ids.map((id, place) => place % 2 === 0 ? preparedBatch(id) : large(id));
  const receipts = await Promise.all(batches.map((batch) => service.append(batch)));
  assert.deepEqual(receipts.map(({ events }) => events), [
    1,
    BATCH_EVENTS_MAX,
    1,
    BATCH_EVENTS_MAX,
  ]);
  await service.close();
  const report = await verifyStorage(storage);
  assert.equal(report.failure, null);
});
