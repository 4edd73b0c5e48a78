/**
 * Memory of large bodies, and of the lines that are made of them, used again by those that come
 * next. Left to the collectors of all threads it would be many times what is in use.
 *
 * Invariants: memory has one owner at a time, the pool or who took it; what is held never exceeds
 * the limit. It is not cleared: who takes it writes all that it shows to others.
 */
import { freeMemory } from "../free_memory.ts";
import { POOLED_BYTES_MIN } from "../limits.ts";

/**
 * Memory of large bodies and their lines that is kept for the next ones: what four clients with
 * batches of 10,000 usual events have on their way.
 */
export const POOLED_BYTES_MAX: number = 32 * 1024 * 1024;

/** A size has this many leading bits at the most, so that sizes that differ little are one. */
const SIZE_BITS = 4;
/** Memory this many times as large as asked for is left to those who need it. */
const WASTE_FACTOR_MAX = 4;

export class BufferPool {
  readonly #limitBytes: number;
  /** From the first that was given to the last. */
  #held: ArrayBuffer[] = [];
  #heldBytes = 0;
  /** What may be larger than what it was taken for. */
  readonly #taken = new WeakSet<ArrayBufferLike>();

  constructor(limitBytes: number = POOLED_BYTES_MAX) {
    this.#limitBytes = limitBytes;
  }

  /** Whether memory of this size is held when it is given. */
  keeps(sizeBytes: number): boolean {
    return sizeBytes >= POOLED_BYTES_MIN && sizeBytes <= this.#limitBytes / 2;
  }

  /** How much is held for those who come. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Memory of at least so many bytes, whatever is in it; new if none is held that fits. */
  take(sizeBytes: number): ArrayBuffer {
    const held = this.takeHeld(sizeBytes);
    if (held !== null) return held;
    const memory = new ArrayBuffer(roundedSize(sizeBytes));
    this.#taken.add(memory);
    return memory;
  }

  /** As `take()`; null where it would have to be new. */
  takeHeld(sizeBytes: number): ArrayBuffer | null {
    let best = -1;
    for (const [place, { byteLength }] of this.#held.entries()) {
      const fits = byteLength >= sizeBytes && byteLength <= sizeBytes * WASTE_FACTOR_MAX;
      if (fits && (best < 0 || byteLength < this.#held[best]!.byteLength)) best = place;
    }
    if (best < 0) return null;
    const [memory] = this.#held.splice(best, 1);
    this.#heldBytes -= memory!.byteLength;
    this.#taken.add(memory!);
    return memory!;
  }

  /**
   * Takes memory that nobody uses any more, which leaves each view of it empty; what was given
   * first makes room. What is gone (detached), small, or larger than half of what may be held, is
   * left to the collector.
   */
  give(memory: ArrayBuffer): void {
    const { byteLength } = memory;
    if (!this.keeps(byteLength)) return;
    // The same bytes under another name, and nothing copied: who still looked at them, or gave them
    // once more, would change what another batch acknowledges.
    this.#held.push(memory.transfer());
    this.#heldBytes += byteLength;
    while (this.#heldBytes > this.#limitBytes) {
      const oldest = this.#held.shift()!;
      this.#heldBytes -= oldest.byteLength;
      freeMemory(oldest);
    }
  }

  /** Takes back the memory of bytes, unless there may be others in it. */
  giveBytes(bytes: Uint8Array): void {
    if (this.isAlone(bytes)) this.give(bytes.buffer as ArrayBuffer);
  }

  /** Whether nothing else is in the memory of these bytes: it is theirs, or was taken for them. */
  isAlone({ buffer, byteLength }: Uint8Array): boolean {
    return buffer.byteLength === byteLength || this.#taken.has(buffer);
  }

  /** These bytes came with their memory, and nothing else is in it. */
  adopt({ buffer }: Uint8Array): void {
    this.#taken.add(buffer);
  }

  /** Gives away all that is held. */
  drain(): ArrayBuffer[] {
    const all = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    return all;
  }
}

function roundedSize(sizeBytes: number): number {
  if (sizeBytes < POOLED_BYTES_MIN) return sizeBytes;
  const step = 2 ** (Math.ceil(Math.log2(sizeBytes)) - SIZE_BITS);
  return Math.ceil(sizeBytes / step) * step;
}
