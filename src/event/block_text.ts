/**
 * A text put together at the end of a writer's memory, where the pieces of it are, and taken away
 * from there by blocks: so the memory need not hold the text of a large batch besides its pieces.
 */
import type { Buffer } from "node:buffer";
import type { ByteWriter } from "./byte_writer.ts";

/** A text of all events of a batch leaves that memory by blocks of about this size. */
export const BLOCK_TEXT_BYTES: number = 128 * 1024;

export class BlockText {
  readonly #writer: ByteWriter;
  readonly #start: number;
  readonly #take: (block: Buffer, at: number) => void;
  #takenBytes = 0;

  /** @param take copies a block, whose first byte is at `at` in the text. */
  constructor(writer: ByteWriter, take: (block: Buffer, at: number) => void) {
    this.#writer = writer;
    this.#start = writer.size;
    this.#take = take;
  }

  /** Of the text so far. */
  get sizeBytes(): number {
    return this.#takenBytes + this.#writer.size - this.#start;
  }

  /** Makes room for so many more bytes; what is there may be taken away. */
  reserve(moreBytes: number): void {
    if (this.#writer.size - this.#start >= BLOCK_TEXT_BYTES) this.end();
    this.#writer.reserve(moreBytes);
  }

  /** Takes away the rest. */
  end(): void {
    const at = this.#takenBytes;
    this.#take(this.rest(), at);
  }

  /** What has not been taken away. The memory from where the text began is free again. */
  rest(): Buffer {
    const { bytes, size } = this.#writer;
    this.#takenBytes += size - this.#start;
    this.#writer.size = this.#start;
    return bytes.subarray(this.#start, size);
  }
}
