/** Makes prepared batches for tests, with the digests that the real ones have. */
import { canonicalize } from "../../src/event/canonical_json.ts";
import { batchDigest } from "../../src/event/digest.ts";
import { sha256Hex } from "../../src/event/hash.ts";
import type { PreparedBatch, PreparedEvent } from "../../src/event/types.ts";

export interface EventOptions {
  stream?: string;
  recordKey?: string;
  kind?: string;
  occurredAt?: string;
  payload?: unknown;
}

export function preparedEvent(options: EventOptions = {}): PreparedEvent {
  const payload = canonicalize(options.payload ?? null);
  return {
    stream: options.stream ?? "orders",
    recordKey: options.recordKey ?? "1",
    kind: options.kind ?? "upserted",
    occurredAt: options.occurredAt,
    payload,
    contentHash: sha256Hex(payload),
  };
}

export interface BatchOptions {
  source?: string;
  events?: EventOptions[];
}

/** A batch of one small event unless told otherwise. */
export function preparedBatch(batchId: string, options: BatchOptions = {}): PreparedBatch {
  const { source = "shop", events = [{}] } = options;
  const preparedEvents = events.map(preparedEvent);
  return {
    source,
    batchId,
    batchDigest: batchDigest(source, preparedEvents),
    events: preparedEvents,
    precondition: undefined,
    lineage: undefined,
  };
}
