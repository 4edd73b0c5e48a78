/**
 * Collects the values of one column of a row group as they stand in the file: in Parquet's plain
 * encoding (parquet-format, Encodings.md, PLAIN = 0), cut into pages. The memory is used again for
 * the next row group.
 */
import { Buffer } from "node:buffer";
import { putBytes } from "../line/line_bytes.ts";

/** Parquet pages before compression: what an engine that uses the page index reads at the least. */
export const SEGMENT_PAGE_BYTES: number = 48 * 1024;

const LENGTH_BYTES = 4;
/** More memory than this is given back after a row group: it held a very large value. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024;

/** A part of the values, which stays as it is until more are added. */
export interface PlainPage {
  firstValue: number;
  values: number;
  bytes: Buffer;
}

export class PlainValues {
  #memory: Buffer = Buffer.allocUnsafeSlow(2 * SEGMENT_PAGE_BYTES);
  #length = 0;
  #count = 0;
  /** Where each page starts. */
  #pages: { value: number; at: number }[] = [];

  get count(): number {
    return this.#count;
  }

  /** Where values are; `reserve()` may replace it. */
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

  /** Makes room in `memory` for the next value, which the caller puts there; returns its place. */
  reserve(sizeBytes: number): number {
    const at = this.#length;
    const page = this.#pages.at(-1);
    if (page === undefined || at - page.at >= SEGMENT_PAGE_BYTES) {
      this.#pages.push({ value: this.#count, at });
    }
    this.#length += sizeBytes;
    this.#count += 1;
    if (this.#length > this.#memory.length) this.#grow(at);
    return at;
  }

  /** The values in pages; none when there are none. */
  pages(): PlainPage[] {
    return this.#pages.map(({ value, at }, place) => {
      const next = this.#pages[place + 1] ?? { value: this.#count, at: this.#length };
      return {
        firstValue: value,
        values: next.value - value,
        bytes: this.#memory.subarray(at, next.at),
      };
    });
  }

  /** The bytes of each value that was given to `add()`, without its length. */
  *values(): Iterable<Uint8Array> {
    for (let at = 0; at < this.#length;) {
      const start = at + LENGTH_BYTES;
      at = start + this.#memory.readUInt32LE(at);
      yield this.#memory.subarray(start, at);
    }
  }

  clear(): void {
    if (this.#memory.length > KEPT_BYTES_MAX) {
      this.#memory = Buffer.allocUnsafeSlow(2 * SEGMENT_PAGE_BYTES);
    }
    this.#length = 0;
    this.#count = 0;
    this.#pages = [];
  }

  #grow(usedBytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#length, 2 * this.#memory.length));
    this.#memory.copy(larger, 0, 0, usedBytes);
    this.#memory = larger;
  }
}
