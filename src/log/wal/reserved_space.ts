/**
 * The space that a writer reserves behind the last commit of a tail (docs/format.md, "Appending").
 * It holds a pattern that differs in every block and every tail, so that neither a torn write nor
 * an unwritten block of the disk looks like it. The pattern contains no LF, which ends a commit.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { assert } from "../../assert.ts";
import { RESERVED_BYTES, RESERVING_TAIL_BYTES_MIN } from "../../limits.ts";
import type { FileReader } from "../storage/storage.ts";

/** Each block of the pattern starts with its number. */
const BLOCK_BYTES = 512;
/** A number has seven bits in each of its four bytes. */
const BLOCK_NUMBER_MAX = 2 ** 28 - 1;
/** The pattern depends on this many bytes at the start of the tail, which contain event ids. */
const KEY_RANGE_BYTES = 4096;

/** Returns the key to the pattern of a tail that has reached `RESERVING_TAIL_BYTES_MIN`. */
export async function reservedKey(file: FileReader): Promise<Uint8Array> {
  const start = new Uint8Array(KEY_RANGE_BYTES);
  await file.read(start, 0);
  return createHash("sha256").update(start).digest().map((byte) => byte | 0x80);
}

/** Returns the pattern for the range of a tail that starts at `offset`. */
export function reservedSpace(key: Uint8Array, offset: number, sizeBytes: number): Buffer {
  const first = Math.floor(offset / BLOCK_BYTES);
  const last = Math.floor((offset + sizeBytes) / BLOCK_BYTES);
  assert(last <= BLOCK_NUMBER_MAX, "a tail must not have more blocks than can be numbered");
  const blocks = Buffer.allocUnsafeSlow((last - first + 1) * BLOCK_BYTES);
  blocks.set(key);
  for (let filled = key.length; filled < blocks.length; filled *= 2) {
    blocks.copyWithin(filled, 0, filled);
  }
  const view = new DataView(blocks.buffer);
  for (let number = first; number <= last; number++) {
    const digits = (number & 0x7f) | (number << 1 & 0x7f00) | (number << 2 & 0x7f0000) |
      (number << 3 & 0x7f000000);
    view.setInt32((number - first) * BLOCK_BYTES, digits | 0x80808080);
  }
  const start = offset - first * BLOCK_BYTES;
  return blocks.subarray(start, start + sizeBytes);
}

/** Returns the end of the bytes in [0, sizeBytes) of a tail that are not reserved space. */
export async function usedBytes(file: FileReader, sizeBytes: number): Promise<number> {
  // A commit precedes reserved space.
  const start = Math.max(RESERVING_TAIL_BYTES_MIN, sizeBytes - RESERVED_BYTES - 1);
  if (start >= sizeBytes) return sizeBytes;
  const end = Buffer.alloc(sizeBytes - start);
  await file.read(end, start);
  const pattern = reservedSpace(await reservedKey(file), start, end.length);
  const last = end.findLastIndex((byte, at) => byte !== pattern[at]);
  return last < 0 ? sizeBytes : start + last + 1;
}
