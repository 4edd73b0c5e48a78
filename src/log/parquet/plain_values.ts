/**
 * Collects the values in one column of a row group in Parquet's plain encoding (parquet-format,
 * Encodings.md, PLAIN = 0). The buffer is reused for the next row group.
 */
import { Buffer } from "node:buffer";
import { ByteWriter } from "../../event/byte_writer.ts";
import { putBytes, viewOf } from "../line/line_bytes.ts";

const LENGTH_BYTES = 4;
const INITIAL_BYTES = 64 * 1024;
/** A larger buffer is dropped, so that one very large value does not retain memory. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024;

export class PlainValues extends ByteWriter {
  constructor() {
    super(INITIAL_BYTES);
  }

  /** All values so far. */
  get values(): Buffer {
    return this.bytes.subarray(0, this.size);
  }

  /** Appends a variable-length value: its length, then its bytes. */
  add(from: Uint8Array, start = 0, end: number = from.length): void {
    const at = this.take(LENGTH_BYTES + end - start);
    this.bytes.writeUInt32LE(end - start, at);
    putBytes(this.bytes, at + LENGTH_BYTES, from, start, end);
  }

  /** Adds room in `bytes` for the next value, which the caller writes; returns its offset. */
  take(sizeBytes: number): number {
    this.reserve(sizeBytes);
    this.size += sizeBytes;
    return this.size - sizeBytes;
  }

  clear(): void {
    if (this.bytes.length > KEPT_BYTES_MAX) this.bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES);
    this.size = 0;
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
