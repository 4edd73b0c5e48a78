/** Encodes batches without the reader of request bodies, and so without its rules. */
import { Buffer } from "node:buffer";
import {
  batchEncoder,
  KIND,
  OCCURRED_AT,
  type Part,
  RECORD_KEY,
  STREAM,
} from "../../src/event/batch_encoder.ts";
import type { PreparedBatch } from "../../src/event/types.ts";

/** A valid event with a canonical payload. */
export interface PreparedEvent {
  stream: string;
  recordKey: string;
  kind: string;
  occurredAt: string | undefined;
  payload: string;
}

export function encodeBatch(
  source: string,
  batchId: string,
  events: readonly PreparedEvent[],
): PreparedBatch {
  batchEncoder.begin();
  const { writer } = batchEncoder;
  const quote = (text: string): Part => {
    const start = writer.size;
    writer.append(Buffer.from(JSON.stringify(text)));
    return { start, end: writer.size };
  };
  const write = (piece: number, text: string) => {
    const { start, end } = quote(text);
    batchEncoder.setPiece(piece, start, end);
  };
  for (const { stream, recordKey, kind, occurredAt, payload } of events) {
    const event = batchEncoder.addEvent();
    write(event + STREAM, stream);
    write(event + RECORD_KEY, recordKey);
    write(event + KIND, kind);
    if (occurredAt !== undefined) write(event + OCCURRED_AT, occurredAt);
    const start = writer.size;
    writer.append(Buffer.from(payload));
    batchEncoder.endPayload(event, start);
  }
  const encoded = batchEncoder.finish(quote(source), quote(batchId));
  return { source, batchId, precondition: undefined, lineage: undefined, ...encoded };
}
