/**
 * The lines of row groups that were read lately, of all segments together. A row group is decoded
 * whole, and one at a time, which bounds the memory of decoding whatever the number of readers.
 *
 * The memory of dropped lines is used for the next row group: V8 collects the whole heap each time
 * some MiB have been allocated outside of it, so fresh memory for each row group would halve the
 * rate of sealed replay. Lines are shown only during a call: nobody holds lines that were dropped.
 */
import { Buffer } from "node:buffer";
import { LruCache } from "../../lru_cache.ts";
import type { Segment } from "./segment_reader.ts";

/**
 * Lines kept in memory: fifty row groups of the ordinary size, for readers at as many places. The
 * memory of a dropped one comes on top.
 */
export const ROW_GROUP_CACHE_BYTES_MAX: number = 32 * 1024 * 1024;

/** Memory of a larger row group is left to the collector. */
const SPARE_BYTES_MAX = 4 * 1024 * 1024;

export class RowGroupCache {
  readonly #lines = new LruCache<Buffer>(
    ROW_GROUP_CACHE_BYTES_MAX,
    ({ buffer }) => buffer.byteLength,
    (lines) => this.#keepSpare(lines),
  );
  /** Memory of lines that were dropped. */
  #spare: Buffer | undefined;
  /** Settles when the row group that is being decoded is. */
  #decoding: Promise<unknown> = Promise.resolve();

  /**
   * Calls `use` with the stored lines of a row group, each with its LF. They are gone when it
   * returns: it must not change them, and copies what it keeps. @throws {SegmentError}
   */
  async read<Result>(
    segment: Segment,
    number: number,
    use: (lines: Buffer) => Result,
  ): Promise<Result> {
    const key = keyOf(segment, number);
    for (;;) {
      const lines = this.#lines.get(key);
      if (lines !== undefined) return use(lines);
      await this.#lines.load(key, () => this.#decode(segment, number));
    }
  }

  /** Whether the lines of a row group are in memory. */
  has(segment: Segment, number: number): boolean {
    return this.#lines.get(keyOf(segment, number)) !== undefined;
  }

  #decode(segment: Segment, number: number): Promise<Buffer> {
    const lines = this.#decoding.then(() => {
      const memory = this.#spare;
      this.#spare = undefined;
      return segment.readRowGroup(number, memory);
    });
    // Its reader gets the error; the next row group is decoded all the same.
    this.#decoding = lines.catch(() => {});
    return lines;
  }

  #keepSpare({ buffer }: Buffer): void {
    if (buffer.byteLength <= SPARE_BYTES_MAX) this.#spare = Buffer.from(buffer as ArrayBuffer);
  }
}

function keyOf({ path }: Segment, number: number): string {
  return `${path} ${number}`;
}
