/** The innocent client beside hostile ones: it appends, and lists what it has appended. */
import type { Buffer } from "node:buffer";
import { setTimeout as delay } from "node:timers/promises";
import { LatencyHistogram } from "../support/latency_histogram.ts";
import type { RawClient } from "../support/raw_client.ts";
import { getRequest, postRequest, typicalEvents } from "../support/requests.ts";
import { LARGE_KIND, TOKEN } from "./attacks.ts";

const STREAMS = 1000;
const LARGE_EVENT_BYTES = 30 * 1024 * 1024;
/** Pause between requests. */
const PAUSE_MS = 5;

let batches = 0;

/** Builds an authorized request for a batch. */
export function batchOf(events: unknown[]): Buffer {
  const batch_id = `${Date.now()}-${batches++}`;
  return postRequest({ batch_id, source: "innocent", events }, TOKEN);
}

export function eventOf(number: number, stream: string, kind: string, payload: unknown): unknown {
  return { stream, record_key: `key-${number}`, kind, payload };
}

export async function exchange(client: RawClient, request: Buffer): Promise<number> {
  const { status, bodyEnd } = await client.exchange(request);
  if (status !== 200 && status !== 429) throw new Error(`status ${status}: ${bodyEnd}`);
  return status;
}

/** Appends what the clients that read nothing ask for: a large event, and a page of streams. */
export async function appendLarge(client: RawClient): Promise<void> {
  const large = eventOf(0, "large", LARGE_KIND, "x".repeat(LARGE_EVENT_BYTES));
  await exchange(client, batchOf([large]));
  const streams = Array.from({ length: STREAMS }, (_, n) => n);
  await exchange(client, batchOf(streams.map((n) => eventOf(n, `stream-${n}`, "u", n))));
}

/** Appends and lists for `durationMs`, and at least once. */
export async function beInnocent(client: RawClient, events: number, durationMs: number) {
  const listing = getRequest("/v1/streams?source=innocent", TOKEN);
  const latencies = new LatencyHistogram();
  const appendLatencies = new LatencyHistogram();
  let refusals = 0;
  const endMs = performance.now() + durationMs;
  do {
    for (const request of [batchOf(typicalEvents(events)), listing]) {
      const startMs = performance.now();
      const status = await exchange(client, request);
      const latencyMs = performance.now() - startMs;
      latencies.record(latencyMs);
      if (request !== listing) appendLatencies.record(latencyMs);
      if (status === 429) refusals += 1;
      await delay(PAUSE_MS);
    }
  } while (performance.now() < endMs);
  return { latencies, appendLatencies, refusals };
}
