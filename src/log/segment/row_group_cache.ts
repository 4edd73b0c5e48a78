/**
 * The lines of recently read row groups, of all segments. Row groups are decoded one at a time,
 * which bounds the memory of decoding for any number of readers.
 *
 * The next row group reuses the memory of evicted lines: V8 runs a full collection after every few
 * MiB allocated outside its heap, so fresh memory would halve the rate of sealed replay. Lines are
 * exposed only during a call, so nobody holds evicted ones.
 */
import { Buffer } from "node:buffer";
import { LruCache } from "../../lru_cache.ts";
import type { Segment } from "./segment_reader.ts";

/** Lines kept in memory: fifty typical row groups. The memory of an evicted one comes on top. */
export const ROW_GROUP_CACHE_BYTES_MAX: number = 32 * 1024 * 1024;

/** Largest memory that is reused. */
const SPARE_BYTES_MAX = 4 * 1024 * 1024;

export class RowGroupCache {
  readonly #lines = new LruCache<Buffer>(
    ROW_GROUP_CACHE_BYTES_MAX,
    ({ buffer }) => buffer.byteLength,
    (lines) => this.#keepSpare(lines),
  );
  /** Memory of evicted lines. */
  #spare: Buffer | undefined;
  /** Settles when the current decode does. */
  #decoding: Promise<unknown> = Promise.resolve();

  /**
   * Calls `use` with the stored lines of a row group, each with its LF. They are valid until it
   * returns, and read-only. @throws {SegmentError}
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
    // Its reader gets the error; the next decode must not.
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
