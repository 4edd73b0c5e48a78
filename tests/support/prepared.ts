/** Builds prepared batches for tests, with real digests. */
import { canonicalize } from "../../src/event/json/canonical_json.ts";
import { parseJsonText } from "../../src/event/json/strict_json.ts";
import type { PreparedBatch } from "../../src/event/types.ts";
import { encodeBatch, type PreparedEvent } from "./encode_batch.ts";

export interface EventOptions {
  stream?: string;
  recordKey?: string;
  kind?: string;
  occurredAt?: string;
  payload?: unknown;
}

function preparedEvent(options: EventOptions): PreparedEvent {
  return {
    stream: options.stream ?? "orders",
    recordKey: options.recordKey ?? "1",
    kind: options.kind ?? "upserted",
    occurredAt: options.occurredAt,
    payload: canonicalize(options.payload ?? null),
  };
}

export interface BatchOptions {
  source?: string;
  events?: EventOptions[];
}

/** A batch, by default of one small event. */
export function preparedBatch(batchId: string, options: BatchOptions = {}): PreparedBatch {
  const { source = "shop", events = [{}] } = options;
  return encodeBatch(source, batchId, events.map(preparedEvent));
}

/** The lines in an uncommitted batch, with parsed members and the payload as stored. */
export function submittedEvents({ events }: PreparedBatch): PreparedEvent[] {
  return events.lines.toString().trimEnd().split("\n").map((line) => {
    const { stream, record_key: recordKey, kind, occurred_at: occurredAt } = parseJsonText(line);
    const start = line.indexOf('"payload":') + '"payload":'.length;
    const payload = line.slice(start, line.lastIndexOf(',"content_hash":'));
    return { stream, recordKey, kind, occurredAt, payload };
  });
}
