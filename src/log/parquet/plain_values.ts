/**
 * Collects the values in one column of a row group in Parquet's plain encoding (parquet-format,
 * Encodings.md, PLAIN = 0). The buffer is reused for the next row group.
 */
import { Buffer } from "node:buffer";
import { putBytes, viewOf } from "../line/line_bytes.ts";

const LENGTH_BYTES = 4;
const INITIAL_BYTES = 64 * 1024;
/** A larger buffer is dropped, so that one very large value does not retain memory. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024;

export class PlainValues {
  #memory: Buffer = Buffer.allocUnsafeSlow(INITIAL_BYTES);
  #length = 0;

  /** Buffer for the values; `reserve()` may replace it. */
  get memory(): Buffer {
    return this.#memory;
  }

  /** All values so far. */
  get bytes(): Buffer {
    return this.#memory.subarray(0, this.#length);
  }

  /** Appends a variable-length value: its length, then its bytes. */
  add(from: Uint8Array, start = 0, end: number = from.length): void {
    const at = this.reserve(LENGTH_BYTES + end - start);
    this.#memory.writeUInt32LE(end - start, at);
    putBytes(this.#memory, at + LENGTH_BYTES, from, start, end);
  }

  /** Appends a fixed-size value, without a length prefix. */
  addFixed(from: Uint8Array): void {
    const at = this.reserve(from.length);
    putBytes(this.#memory, at, from);
  }

  /** Reserves bytes in `memory` for the next value, which the caller writes; returns its offset. */
  reserve(sizeBytes: number): number {
    const at = this.#length;
    this.#length += sizeBytes;
    if (this.#length > this.#memory.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(this.#length, 2 * this.#memory.length));
      this.#memory.copy(larger, 0, 0, at);
      this.#memory = larger;
    }
    return at;
  }

  clear(): void {
    if (this.#memory.length > KEPT_BYTES_MAX) this.#memory = Buffer.allocUnsafeSlow(INITIAL_BYTES);
    this.#length = 0;
  }
}

/** Yields the values in plain-encoded bytes, without their length prefixes. */
export function* plainValues(bytes: Buffer): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.length;) {
    const start = at + LENGTH_BYTES;
    at = start + bytes.readUInt32LE(at);
    yield viewOf(bytes, start, at);
  }
}
