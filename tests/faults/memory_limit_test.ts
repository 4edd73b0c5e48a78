/**
 * The real service with a small heap gets concurrent bodies of the maximum size. It survives,
 * because bodies wait for memory and are prepared one at a time. After a restart, everything
 * acknowledged can still be read. MEMORY_ROUNDS sets the number of rounds.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { peakMemoryBytes } from "../../bench/support/process_stats.ts";
import type { Receipt } from "../../src/event/types.ts";
import { INGEST_BODY_BYTES_MAX } from "../../src/limits.ts";
import { assertError, ingest, replayPage, streamsPage } from "../contract/support/api.ts";
import { withServing } from "../support/deployment.ts";

const ROUNDS = Number(process.env.MEMORY_ROUNDS ?? 1);
const HEAP_MIB = 256;
const MIB = 1024 * 1024;
/** What the service may take under any load. */
const MEMORY_BYTES_MAX = 1024 * MIB;
const CLIENTS = 3;
/** Sets the heap limit of either runtime. */
const WRAPPER = [
  "env",
  `NODE_OPTIONS=--max-old-space-size=${HEAP_MIB}`,
  `DENO_V8_FLAGS=--max-old-space-size=${HEAP_MIB}`,
];

/** The events in a batch, as JSON. */
const EVENTS: [title: string, make: () => string][] = [
  ["one string of 32 MiB", () => eventOf(`"${"x".repeat(INGEST_BODY_BYTES_MAX - 500)}"`)],
  ["10,000 events of 3 KiB", () => Array(10_000).fill(eventOf(`"${"y".repeat(3200)}"`)).join()],
  // Regression: each number was stored as a 64-byte tree.
  ["6 million numbers", () => eventOf(`[${"1,".repeat(6 * MIB)}1]`)],
  // Regression: buffers that had grown took 1.7 GiB.
  ["the largest stored event", () => eventOf(`[${"1e20,".repeat(6.3 * MIB)}1]`)],
];

function eventOf(payload: string): string {
  return `{"stream":"orders","record_key":"1","kind":"upserted","payload":${payload}}`;
}

/** Resends a body until it is accepted. The service may respond with `overloaded` first. */
async function ingestAtLast(socketPath: string, body: string): Promise<Receipt> {
  for (;;) {
    const reply = await ingest(socketPath, body);
    if (reply.status === 200) return reply.json();
    assertError(reply, "overloaded");
  }
}

for (const [title, make] of EVENTS) {
  test(`serve with a ${HEAP_MIB} MiB heap survives ${title} from each of ${CLIENTS} clients`, () =>
    withServing(async (deployment) => {
      const { socketPath } = deployment;
      const events = make();
      const receipts: Receipt[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const sending = Array.from({ length: CLIENTS }, (_, client) => {
          const body = `{"source":"s","batch_id":"${round}-${client}","events":[${events}]}`;
          return ingestAtLast(socketPath, body);
        });
        receipts.push(...await Promise.all(sending));
      }
      const peakBytes = peakMemoryBytes(deployment.serving.child.pid!) ?? 0;
      assert.ok(peakBytes <= MEMORY_BYTES_MAX, `took ${Math.round(peakBytes / MIB)} MiB`);
      await deployment.stop("SIGKILL");

      await deployment.start({ wrapper: WRAPPER });
      const [event] = (await replayPage(socketPath, "limit=1")).events;
      assert.ok(receipts.some(({ first_event_id }) => first_event_id === event!.event_id));
      const { streams } = await streamsPage(socketPath);
      const expected = receipts.reduce((sum, receipt) => sum + receipt.events, 0);
      assert.equal(streams[0]!.event_count, expected, "everything acknowledged exists");
      await deployment.stop();
      assert.equal((await deployment.verify()).events_checked, expected);
    }, { wrapper: WRAPPER }));
}
