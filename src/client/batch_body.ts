/** The body of an append. It is made once: every attempt sends the same bytes. */
import type { StreamPrecondition, SubmittedEvent } from "../event/types.ts";

/** A batch: committed as a whole or not at all, once for each `(source, batchId)`. */
export interface Batch {
  /** Who submits it: `[a-z0-9_][a-z0-9_.-]*`, at most 128 bytes; not `system`. */
  source: string;
  /**
   * Names the batch within its source for ever: not empty, at most 256 bytes of UTF-8, not
   * beginning with `service/`. Choose it so that a connector that starts again makes the same id
   * for the same events.
   */
  batchId: string;
  /** 1 to 10,000 events, in order. */
  events: readonly SubmittedEvent[];
  /** Commits only while the stream's last event is this one. */
  precondition?: StreamPrecondition;
}

/**
 * The batch as JSON in UTF-8, as `JSON.stringify` has it, but for what that would silently change:
 * @throws {TypeError} when a number is not finite, or a value is circular or a bigint.
 */
export function batchBody(batch: Batch): Uint8Array<ArrayBuffer> {
  const { source, batchId, events, precondition } = batch;
  const body = {
    v: 1,
    batch_id: batchId,
    source,
    events,
    ...(precondition === undefined ? {} : {
      stream_precondition: {
        stream: precondition.stream,
        expected_frontier: precondition.expectedFrontier,
      },
    }),
  };
  return new TextEncoder().encode(JSON.stringify(body, refuseNonFinite));
}

/** `JSON.stringify` writes null for these. */
function refuseNonFinite(name: string, value: unknown): unknown {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  throw new TypeError(`member ${JSON.stringify(name)} is ${value}, which JSON cannot say`);
}
