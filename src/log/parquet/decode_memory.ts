/**
 * Memory that row groups are read and decoded into, used again for the next one: to collect what is
 * thrown away after each would cost more than to decode it. What is taken from it is valid until it
 * is cleared.
 */
import { Buffer } from "node:buffer";
import { MEMORY_GROWTH_FACTOR } from "../../limits.ts";

/** How often that is there: one row group is decoded at a time, by the one thread there is. */
export const DECODE_MEMORIES_MAX: number = 1;

/**
 * Memory kept to decode row groups in: what one of the largest ordinary size takes, its pages
 * compressed and decompressed. A larger one is decoded in memory of its own.
 */
export const DECODE_MEMORY_BYTES_MAX: number = 16 * 1024 * 1024;

const WORD_BYTES = Uint32Array.BYTES_PER_ELEMENT;

export class DecodeMemory {
  #bytes: Buffer = Buffer.allocUnsafeSlow(0);
  /** Bytes taken since it was cleared, those too that it had no room for. */
  #takenBytes = 0;

  /** Memory with any content. */
  take(sizeBytes: number): Buffer {
    const start = this.#takenBytes;
    // The next start is one of a word.
    this.#takenBytes += Math.ceil(sizeBytes / WORD_BYTES) * WORD_BYTES;
    return this.#takenBytes <= this.#bytes.length
      ? this.#bytes.subarray(start, start + sizeBytes)
      : Buffer.allocUnsafeSlow(sizeBytes);
  }

  /** Words with any content. */
  takeWords(count: number): Uint32Array {
    const { buffer, byteOffset } = this.take(count * WORD_BYTES);
    return new Uint32Array(buffer, byteOffset, count);
  }

  /** What was taken may be overwritten from here on. */
  clear(): void {
    if (this.#takenBytes > this.#bytes.length && this.#takenBytes <= DECODE_MEMORY_BYTES_MAX) {
      const sizeBytes = Math.ceil(this.#takenBytes * MEMORY_GROWTH_FACTOR);
      this.#bytes = Buffer.allocUnsafeSlow(Math.min(sizeBytes, DECODE_MEMORY_BYTES_MAX));
    }
    this.#takenBytes = 0;
  }
}

const idle: DecodeMemory[] = [];
/** How many are used by somebody. */
let inUse = 0;
/** Who waits for one, from first to last. */
const waiting: (() => void)[] = [];

/**
 * Calls `use` with memory that nobody else uses until it is done. No more than DECODE_MEMORIES_MAX
 * are used at a time: others wait, so `use` must not ask for another one.
 */
export async function withDecodeMemory<Result>(
  use: (memory: DecodeMemory) => Promise<Result>,
): Promise<Result> {
  if (inUse < DECODE_MEMORIES_MAX) inUse += 1;
  else await new Promise<void>((resolve) => waiting.push(resolve));
  const memory = idle.pop() ?? new DecodeMemory();
  try {
    return await use(memory);
  } finally {
    memory.clear();
    idle.push(memory);
    const next = waiting.shift();
    if (next === undefined) inUse -= 1;
    else next();
  }
}
