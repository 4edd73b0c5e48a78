/**
 * A buffer that grows as bytes are appended. Most appends copy bytes that it already contains,
 * since both runtimes copy fastest within one buffer.
 */
import { Buffer } from "node:buffer";

/**
 * Growth factor of a full buffer. Memory that is never written takes none of the machine's, so
 * this costs less than the buffers that more steps would leave to the garbage collector.
 */
const GROWTH_FACTOR = 4;
/** Size up to which a loop copies faster than `copyWithin()`. */
const LOOPED_BYTES_MAX = 16;

export class ByteWriter {
  /** The first `size` bytes are the contents. `reserve()` may replace the buffer. */
  bytes: Buffer;
  size = 0;

  constructor(capacityBytes: number) {
    this.bytes = Buffer.allocUnsafeSlow(capacityBytes);
  }

  reserve(moreBytes: number): void {
    const sizeBytes = this.size + moreBytes;
    if (sizeBytes <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(
      Math.max(this.bytes.length * GROWTH_FACTOR, sizeBytes),
    );
    this.bytes.copy(larger, 0, 0, this.size);
    this.bytes = larger;
  }

  append(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.size);
    this.size += bytes.length;
  }

  ascii(text: string): void {
    this.reserve(text.length);
    putAscii(text, this.bytes, this.size);
    this.size += text.length;
  }

  /** Appends a copy of bytes already in the buffer. */
  copyOwn(start: number, end: number): void {
    if (this.size + end - start > this.bytes.length) this.reserve(end - start);
    const { bytes, size } = this;
    if (end - start > LOOPED_BYTES_MAX) bytes.copyWithin(size, start, end);
    else for (let at = start; at < end; at++) bytes[size + at - start] = bytes[at]!;
    this.size = size + end - start;
  }

  /** Removes the bytes from `start` to the end and returns a copy of them. */
  takeFrom(start: number): Buffer {
    const taken = Buffer.allocUnsafe(this.size - start);
    this.bytes.copy(taken, 0, start, this.size);
    this.size = start;
    return taken;
  }
}

export function putAscii(text: string, into: Uint8Array, start: number): void {
  for (let at = 0; at < text.length; at++) into[start + at] = text.charCodeAt(at);
}

export function startsWith(bytes: Uint8Array, at: number, text: Uint8Array): boolean {
  for (let index = 0; index < text.length; index++) {
    if (bytes[at + index] !== text[index]) return false;
  }
  return true;
}
