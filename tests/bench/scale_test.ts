/** The load, counters and comparisons in the scale and steady benchmarks. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { sideBySide } from "../../bench/scale/figures.ts";
import { BulkBatches } from "../../bench/scale/history.ts";
import { Deliveries } from "../../bench/steady/deliveries.ts";
import { compareThirds } from "../../bench/steady/thirds.ts";
import { checkBatch } from "../../src/event/batch.ts";

for (const [batchEvents, batches] of [[1000, 3], [1, 250]] as const) {
  test(`BulkBatches of ${batchEvents} have unique ids and keys, and cover all streams`, () => {
    const requests = new BulkBatches(batchEvents);
    const ids = new Set<string>();
    const keys = new Set<string>();
    const streams = new Set<string>();
    for (let number = 0; number < batches; number++) {
      const request = requests.request(number);
      const body = request.subarray(request.indexOf("\r\n\r\n") + 4);
      const { batchId, source, events } = checkBatch(body);
      ids.add(batchId);
      for (const { recordKey, stream } of events) {
        keys.add(recordKey);
        streams.add(`${source} ${stream}`);
      }
    }
    const events = batches * batchEvents;
    assert.deepEqual([ids.size, keys.size, streams.size], [batches, events, events]);
  });
}

test("sideBySide() returns the ratio of last to first, or null if one is missing", () => {
  const columns = [
    { name: "small", figures: { "start ms": 200, "lost MB": null } },
    { name: "large", figures: { "start ms": 300, "lost MB": 4 } },
  ];
  assert.deepEqual(sideBySide(columns), [
    { row: "start ms", small: 200, large: 300, "last/first": 1.5, "at most": "1,000" },
    { row: "lost MB", small: null, large: 4, "last/first": null, "at most": null },
  ]);
});

/** The end of a follow record whose `next_after` is `id`. */
function recordThrough(id: string): Buffer {
  return Buffer.from(`],"next_after":"${id}","snapshot_through_event_id":"ff"}\n\r\n`);
}

test("Deliveries counts each batch once per follower, before or after its receipt", () => {
  const deliveries = new Deliveries();
  const [fast, slow] = [deliveries.receiver(), deliveries.receiver()];
  const sentMs = performance.now() - 1000;
  fast(3, recordThrough("03"));
  for (const lastEventId of ["03", "02", "05"]) deliveries.committed({ lastEventId, sentMs });
  assert.equal(deliveries.missing, 1 + 3);
  slow(2, recordThrough("02"));
  fast(2, recordThrough("05"));
  assert.equal(deliveries.missing, 2);
  slow(3, recordThrough("06"));
  assert.equal(deliveries.missing, 0);
  const latencies = deliveries.take();
  assert.equal(latencies.count, 6);
  assert.ok(latencies.quantileMs(0.01) >= 990);
  assert.throws(() => fast(1, Buffer.from("}\n\r\n")), /not the end of a follow record/);
});

test("compareThirds() distinguishes growth from noise", () => {
  const compared = (...figures: [memory: number, p99: number][]) =>
    compareThirds(figures.map(([memoryMb, p99Ms]) => ({
      memoryMb,
      appendP99Ms: p99Ms,
      deliveryP99Ms: 2 * p99Ms,
    })));
  const before: [number, number][] = [[100, 3], [120, 9], [90, 2], [500, 50], [400, 60], [1, 1]];
  assert.deepEqual(compared(...before, [90, 4], [130, 3], [80, 9]), [
    "memory: first third 120 MB, last third 130 MB: flat",
    "append p99: first third 3 ms, last third 4 ms: flat",
    "delivery p99: first third 6 ms, last third 8 ms: flat",
  ]);
  assert.deepEqual(compared([100, 3], [1, 1], [121, 5]), [
    "memory: first third 100 MB, last third 121 MB: grew by more than 1.2",
    "append p99: first third 3 ms, last third 5 ms: grew by more than 1.5",
    "delivery p99: first third 6 ms, last third 10 ms: grew by more than 1.5",
  ]);
});
