/** Matches event lines to their batch by the bytes that spell it. */
import { Buffer } from "node:buffer";
import { sameBytes } from "./line_bytes.ts";
import type { StoredEvent } from "./stored_event.ts";

export class SpelledBatch {
  readonly #source: Buffer;
  readonly #batchId: Buffer;

  constructor({ source, batch_id }: { source: string; batch_id: string }) {
    this.#source = spelled(source);
    this.#batchId = spelled(batch_id);
  }

  /** Whether the event names the source and the id of this batch. */
  holds({ bytes, sourceStart, sourceEnd, batchIdStart, batchIdEnd }: StoredEvent): boolean {
    const source = this.#source;
    const batchId = this.#batchId;
    return sameBytes(bytes, sourceStart, sourceEnd, source, 0, source.length) &&
      sameBytes(bytes, batchIdStart, batchIdEnd, batchId, 0, batchId.length);
  }
}

/** A string as a line spells it, without its quotes. */
function spelled(text: string): Buffer {
  return Buffer.from(JSON.stringify(text).slice(1, -1));
}
