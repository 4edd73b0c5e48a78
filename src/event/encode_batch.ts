/** Encodes a batch whose events are there one by one. */
import {
  batchEncoder as encoder,
  KIND,
  OCCURRED_AT,
  PAYLOAD,
  RECORD_KEY,
  STREAM,
} from "./batch_encoder.ts";
import { quoteString } from "./json/quote_string.ts";
import type { CheckedBatch, PreparedBatch } from "./types.ts";

export function encodeBatch(batch: CheckedBatch): PreparedBatch {
  encoder.begin();
  const { pieces, writer } = encoder;
  const write = (piece: number, text: string) => {
    pieces[piece] = writer.size;
    writer.text(text);
    pieces[piece + 1] = writer.size;
  };
  for (const event of batch.events) {
    const first = encoder.addEvent();
    write(first + STREAM, quoteString(event.stream));
    write(first + RECORD_KEY, quoteString(event.recordKey));
    write(first + KIND, quoteString(event.kind));
    if (event.occurredAt !== undefined) write(first + OCCURRED_AT, quoteString(event.occurredAt));
    write(first + PAYLOAD, event.payload);
    pieces[first + PAYLOAD + 1] = encoder.endPayload(pieces[first + PAYLOAD]!);
  }
  const { source, batchId, precondition, lineage } = batch;
  return { source, batchId, precondition, lineage, ...encoder.finish(source, batchId) };
}
