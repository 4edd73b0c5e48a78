/** How the steady benchmark counts what its followers receive. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { Deliveries } from "../../bench/steady/deliveries.ts";

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
