/** Encodes events and batches as requests. */
import type { StreamPrecondition, SubmittedEvent } from "../event/types.ts";
import { refuseUnknown, spelledAs } from "./transport.ts";

/** A batch whose events are encoded as JSON. */
export interface EncodedBatch {
  source: string;
  batchId: string;
  events: readonly string[];
  precondition?: StreamPrecondition | undefined;
}

const MEMBERS = ["stream", "record_key", "kind", "occurred_at", "payload"];

/**
 * Encodes an event.
 * @throws {TypeError} if JSON cannot represent it, or it has a member in the wrong spelling.
 */
export function encodeEvent(event: SubmittedEvent): string {
  for (const name in event) {
    const meant = MEMBERS.includes(name) ? undefined : spelledAs(name, MEMBERS);
    if (meant !== undefined) throw new TypeError(`an event has no member ${name}; use ${meant}`);
  }
  return JSON.stringify(event, refuseNonFinite) ?? "null";
}

/** Returns the request body. */
export function batchBody(batch: EncodedBatch): Uint8Array<ArrayBuffer> {
  const { source, batchId: batch_id, events, precondition } = batch;
  if (precondition !== undefined) {
    refuseUnknown("precondition", precondition, "stream expectedFrontier");
  }
  const stream_precondition = precondition && {
    stream: precondition.stream,
    expected_frontier: precondition.expectedFrontier,
  };
  const members = JSON.stringify({ v: 1, batch_id, source, stream_precondition });
  return new TextEncoder().encode(`${members.slice(0, -1)},"events":[${events.join(",")}]}`);
}

/** Rejects a number that `JSON.stringify` would write as null. */
function refuseNonFinite(name: string, value: unknown): unknown {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  throw new TypeError(`member ${JSON.stringify(name)} is ${value}, which JSON cannot represent`);
}
