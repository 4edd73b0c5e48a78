/** Encodes the body of an append request once, so that every attempt sends the same bytes. */
import type { StreamPrecondition, SubmittedEvent } from "../event/types.ts";
import { refuseUnknown } from "./options.ts";

/** A batch of events, committed atomically and only once per `(source, batchId)`. */
export interface Batch {
  /** The submitting source: `[a-z0-9_][a-z0-9_.-]*`, at most 128 bytes; not `system`. */
  source: string;
  /**
   * Permanent id of the batch within its source: 1 to 256 bytes of UTF-8, not starting with
   * `service/`. A restarted connector should derive the same id for the same events.
   */
  batchId: string;
  /** 1 to 10,000 events, in order. */
  events: readonly SubmittedEvent[];
  /** Commits the batch only if the stream ends with the expected event. */
  precondition?: StreamPrecondition;
}

/** @throws {TypeError} if JSON cannot represent the batch, or a property of it is unknown. */
export function batchBody(batch: Batch): Uint8Array<ArrayBuffer> {
  refuseUnknown("append()", batch, "source batchId events precondition");
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

/** Rejects a number that `JSON.stringify` would write as null. */
function refuseNonFinite(name: string, value: unknown): unknown {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  throw new TypeError(`member ${JSON.stringify(name)} is ${value}, which JSON cannot represent`);
}
