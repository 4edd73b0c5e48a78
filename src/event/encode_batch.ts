/** Encodes a batch whose events are there one by one. */
import { batchEncoder as encoder } from "./batch_encoder.ts";
import { quoteString } from "./quote_string.ts";
import type { CheckedBatch, PreparedBatch } from "./types.ts";

export function encodeBatch(batch: CheckedBatch): PreparedBatch {
  encoder.begin();
  const { pieces, writer } = encoder;
  const write = (text: string) => {
    pieces.push(writer.size);
    writer.text(text);
    pieces.push(writer.size);
  };
  for (const event of batch.events) {
    write(quoteString(event.stream));
    write(quoteString(event.recordKey));
    write(quoteString(event.kind));
    write(event.occurredAt === undefined ? "" : quoteString(event.occurredAt));
    const start = writer.size;
    writer.text(event.payload);
    pieces.push(start, encoder.endPayload(start));
  }
  const { source, batchId, precondition, lineage } = batch;
  return { source, batchId, precondition, lineage, ...encoder.finish(source, batchId) };
}
