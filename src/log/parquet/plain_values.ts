/**
 * Collects the values of one column of a row group in Parquet's plain encoding (parquet-format,
 * Encodings.md, PLAIN = 0), split into pages. The memory is reused for the next row group.
 */
import { Buffer } from "node:buffer";
import { putBytes, viewOf } from "../line/line_bytes.ts";

/** Size of a page before compression: the least that a reader of the page index decodes. */
export const SEGMENT_PAGE_BYTES: number = 48 * 1024;

const LENGTH_BYTES = 4;
/** Don't keep an outsized buffer after one very large value. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024;

export class PlainValues {
  #memory: Buffer = Buffer.allocUnsafeSlow(2 * SEGMENT_PAGE_BYTES);
  #length = 0;
  #pages: { start: number; rows: number }[] = [];

  /** Memory of the values; `reserve()` may replace it. */
  get memory(): Buffer {
    return this.#memory;
  }

  /** All values so far. */
  get bytes(): Buffer {
    return this.#memory.subarray(0, this.#length);
  }

  /** Appends a value of any size: its length, then its bytes. */
  add(from: Uint8Array, start = 0, end: number = from.length): void {
    const at = this.reserve(LENGTH_BYTES + end - start);
    this.#memory.writeUInt32LE(end - start, at);
    putBytes(this.#memory, at + LENGTH_BYTES, from, start, end);
  }

  /** Appends a value of fixed size: its bytes alone. */
  addFixed(from: Uint8Array): void {
    const at = this.reserve(from.length);
    putBytes(this.#memory, at, from);
  }

  /** Reserves room in `memory` for the next value, which the caller writes; returns its offset. */
  reserve(sizeBytes: number): number {
    const at = this.#length;
    let page = this.#pages.at(-1);
    if (page === undefined || at - page.start >= SEGMENT_PAGE_BYTES) {
      page = { start: at, rows: 0 };
      this.#pages.push(page);
    }
    page.rows += 1;
    this.#length += sizeBytes;
    if (this.#length > this.#memory.length) this.#grow(at);
    return at;
  }

  /** The values in pages, valid until one is added; `rows` is the number of values. */
  pages(): { rows: number; values: Buffer }[] {
    return this.#pages.map(({ start, rows }, place) => {
      const end = this.#pages[place + 1]?.start ?? this.#length;
      return { rows, values: this.#memory.subarray(start, end) };
    });
  }

  clear(): void {
    if (this.#memory.length > KEPT_BYTES_MAX) {
      this.#memory = Buffer.allocUnsafeSlow(2 * SEGMENT_PAGE_BYTES);
    }
    this.#length = 0;
    this.#pages = [];
  }

  #grow(usedBytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#length, 2 * this.#memory.length));
    this.#memory.copy(larger, 0, 0, usedBytes);
    this.#memory = larger;
  }
}

/** The values in plain-encoded bytes, without their lengths. */
export function* plainValues(bytes: Buffer): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.length;) {
    const start = at + LENGTH_BYTES;
    at = start + bytes.readUInt32LE(at);
    yield viewOf(bytes, start, at);
  }
}
