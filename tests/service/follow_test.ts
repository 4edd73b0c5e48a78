/** The size and position of records, and reads that overlap commits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FOLLOW_POSITION_INTERVAL_MS, FOLLOW_RECORD_BYTES_MAX } from "../../src/limits.ts";
import { FOLLOW_ALL, idsOf, nextEvents, snapshotRecords } from "../support/follow_records.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { gateAt } from "../support/storage_faults.ts";
import { replayAll } from "../support/stream_listing.ts";
import { submit, submittedBatch, submittedEvent } from "../support/submitted.ts";
import { openTestLog } from "../support/test_log.ts";
import { openTestService } from "../support/test_service.ts";

test("follow() ends a record before it exceeds the size limit but after at least one event", async () => {
  const sizes = [100, 100, 100, 300, 10, 300, 300, 120, 120];
  const { service } = await openTestService(new SimulatedDisk());
  const events = sizes.map((size) => submittedEvent("a", "x".repeat(size * 1024)));
  await submit(service, { source: "shop", batch_id: "1", events });
  const follow = service.follow(FOLLOW_ALL);
  const { snapshot } = await snapshotRecords(follow);
  const kibibytes = (records: typeof snapshot) =>
    records.map(({ events }) => events.map(({ payload }) => (payload as string).length / 1024));
  const expected = [[100, 100], [100], [300], [10], [300], [300], [120, 120]];
  assert.equal(FOLLOW_RECORD_BYTES_MAX, 256 * 1024);
  assert.deepEqual(kibibytes(snapshot), expected);
  await submit(service, { source: "shop", batch_id: "2", events });
  const live = [];
  for (let place = 0; place < expected.length; place++) live.push(await nextEvents(follow));
  assert.deepEqual(kibibytes(live), expected);
  for (const record of [...snapshot, ...live]) {
    assert.equal(record.next_after, record.last_event_id);
  }
  follow.close();
  await service.close();
});

/** A service whose log is split into these files, each of one event. @returns the event ids. */
async function serviceOfFiles(streams: string[]) {
  const storage = new SimulatedDisk();
  for (const [place, stream] of streams.entries()) {
    const { service } = await openTestService(storage);
    await submit(service, submittedBatch("shop", `${place}`, [stream]));
    await service.close();
    if (place === streams.length - 1) break;
    const { log } = await openTestLog(storage);
    await log.seal(() => {});
    await log.close();
  }
  const { service } = await openTestService(storage);
  const ids = (await replayAll(service)).map((event) => event.event_id);
  return { service, storage, ids };
}

test("follow() reports its position during a long scan, at the end of each file", async (context) => {
  const { service, ids } = await serviceOfFiles(["a", "a", "b", "a", "a"]);
  let nowMs = 0;
  context.mock.method(performance, "now", () => nowMs += FOLLOW_POSITION_INTERVAL_MS);
  const follow = service.follow({ ...FOLLOW_ALL, filter: { stream: "b" } });
  const { snapshot, caughtUp } = await snapshotRecords(follow);
  const position = (event: number) => ({ events: [], next_after: ids[event] });
  assert.deepEqual(
    snapshot.map(({ events, next_after }) => ({ events: idsOf({ events } as never), next_after })),
    [position(0), position(1), { events: [ids[2]], next_after: ids[2] }, position(3), position(4)],
  );
  assert.equal(snapshot[0]!.last_event_id, undefined);
  assert.equal(caughtUp.next_after, ids[4]);
  follow.close();
  await service.close();
  // Deno restores no mocks after a test.
  context.mock.restoreAll();
});

test("follow() delivers a commit that matches while the one before it is read", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  const follow = service.follow({ ...FOLLOW_ALL, filter: { stream: "a" } });
  await snapshotRecords(follow);
  const first = nextEvents(follow);
  const gate = gateAt("read");
  storage.hook = gate.hook;
  const receipts = [await submit(service, submittedBatch("shop", "1", ["a"]))];
  await gate.reached;
  for (const [batchId, stream] of [["2", "b"], ["3", "a"], ["4", "b"]] as const) {
    receipts.push(await submit(service, submittedBatch("shop", batchId, [stream])));
  }
  gate.open();
  const ids = receipts.map(({ body }) => body.last_event_id as string);
  assert.deepEqual(idsOf(await first), [ids[0]]);
  assert.deepEqual(idsOf(await nextEvents(follow)), [ids[2]]);
  follow.close();
  await service.close();
});
