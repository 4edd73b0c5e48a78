/**
 * The end of a segment file: a CRC-32, the Parquet footer, its length, and the magic bytes. The
 * CRC-32 covers the footer and its length, so that no damaged statistics prune a row group.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { SEGMENT_FOOTER_BYTES_MAX } from "../../limits.ts";
import type { StorageFile } from "../storage/storage.ts";
import { readRange } from "./read_range.ts";
import { SegmentError } from "./segment_error.ts";
import { thriftBinary, thriftFieldStart, thriftStructEnd } from "./thrift_bounds.ts";

export const MAGIC: Buffer = Buffer.from("PAR1");
/** The CRC-32 in front of the footer. */
const FOOTER_CRC_BYTES = 4;
/** The length of the footer, then the magic bytes. */
const TRAILER_BYTES = 8;

/** A footer whose CRC-32 is right. */
export interface CheckedFooter {
  /** Where what is checked starts in the file: at the CRC-32. */
  start: number;
  /** A whole Thrift struct, then the trailer. */
  bytes: Buffer;
}

/** @throws {SegmentError} when the file is no Parquet file of this program, or is damaged. */
export async function readCheckedFooter(
  file: StorageFile,
  sizeBytes: number,
): Promise<CheckedFooter> {
  const bytesMin = MAGIC.length + FOOTER_CRC_BYTES + TRAILER_BYTES;
  if (sizeBytes < bytesMin) throw new SegmentError(`has ${sizeBytes} bytes`);
  const opening = await readRange(file, 0, MAGIC.length);
  const trailer = await readRange(file, sizeBytes - TRAILER_BYTES, sizeBytes);
  const isParquet = opening.equals(MAGIC) && trailer.subarray(-MAGIC.length).equals(MAGIC);
  if (!isParquet) throw new SegmentError("not a Parquet file");
  const footerBytes = trailer.readUInt32LE();
  const start = sizeBytes - TRAILER_BYTES - footerBytes - FOOTER_CRC_BYTES;
  if (start < MAGIC.length || footerBytes > SEGMENT_FOOTER_BYTES_MAX) {
    throw new SegmentError(`a footer of ${footerBytes} bytes in a file of ${sizeBytes}`);
  }
  const checked = await readRange(file, start, sizeBytes);
  const bytes = checked.subarray(FOOTER_CRC_BYTES);
  if (crc32(bytes.subarray(0, -MAGIC.length)) !== checked.readUInt32LE()) {
    throw new SegmentError(`the footer at byte ${start} does not match its CRC-32`);
  }
  if (thriftStructEnd(bytes, 0, footerBytes) !== footerBytes) {
    throw new SegmentError("the footer has another size");
  }
  return { start, bytes };
}

/** Number of the list of keys and values in Parquet's FileMetaData. */
const KEY_VALUES_FIELD = 5;
/** A list of one struct. */
const ONE_STRUCT = 0x1c;
/** A field of bytes that is numbered right behind the one before it. */
const NEXT_BINARY = 0x18;

/** The text under the only key of a footer. @throws {SegmentError} when the key is another one. */
export function footerText({ bytes }: CheckedFooter, key: string): string {
  const end = bytes.length - TRAILER_BYTES;
  const start = thriftFieldStart(bytes, 0, end, KEY_VALUES_FIELD);
  if (start === null || bytes[start] !== ONE_STRUCT || bytes[start + 1] !== NEXT_BINARY) {
    throw new SegmentError(`the footer has other keys than ${key}`);
  }
  const name = thriftBinary(bytes, start + 2, end);
  const isKey = bytes.toString("latin1", name.start, name.end) === key;
  if (!isKey || bytes[name.end] !== NEXT_BINARY) throw new SegmentError(`no ${key}`);
  const value = thriftBinary(bytes, name.end + 1, end);
  return bytes.toString("utf8", value.start, value.end);
}
