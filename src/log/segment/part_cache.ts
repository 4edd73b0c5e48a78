/**
 * The parts of row groups that were decoded last, in memory that is used again: what is got here is
 * valid until memory is taken for another part.
 */
import type { Buffer } from "node:buffer";
import { ROW_GROUP_CACHE_BYTES_MAX } from "../../limits.ts";
import { LineMemory } from "./segment_lines.ts";

/** Memory that such a part is decoded to: some are a little longer. */
export const PART_MEMORY_BYTES: number = 512 * 1024;

export class PartCache {
  readonly #limitBytes: number;
  /** From the least to the most recently used. */
  readonly #held = new Map<string, LineMemory>();
  #sizeBytes = 0;

  constructor(limitBytes: number = ROW_GROUP_CACHE_BYTES_MAX) {
    this.#limitBytes = limitBytes;
  }

  /** The lines of a part; null when it is not at hand. */
  get(key: string): Buffer | null {
    const memory = this.#held.get(key);
    if (memory === undefined) return null;
    this.#held.delete(key);
    this.#held.set(key, memory);
    return memory.lines;
  }

  /** Empty memory: that of the part that has not been used for longest, when there are enough. */
  takeMemory(): LineMemory {
    while (this.#sizeBytes + PART_MEMORY_BYTES > this.#limitBytes && this.#held.size > 0) {
      const memory = this.#dropFirst();
      if (memory.bytes.length === PART_MEMORY_BYTES) {
        memory.clear();
        return memory;
      }
    }
    return new LineMemory(PART_MEMORY_BYTES);
  }

  keep(key: string, memory: LineMemory): void {
    this.#held.set(key, memory);
    this.#sizeBytes += memory.bytes.length;
    while (this.#sizeBytes > this.#limitBytes) this.#dropFirst();
  }

  #dropFirst(): LineMemory {
    const [key, memory] = this.#held.entries().next().value!;
    this.#held.delete(key);
    this.#sizeBytes -= memory.bytes.length;
    return memory;
  }
}
