/**
 * Encodes and reads the end of a segment file: a CRC-32, the Parquet footer, its length and the
 * magic bytes. The CRC-32 covers footer and length, so damaged statistics never prune a row group.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { SEGMENT_FOOTER_BYTES_MAX } from "../../limits.ts";
import type { FileReader } from "../storage/storage.ts";
import { FILE_META_DATA, type FileMetaData } from "./parquet_format.ts";
import { readRange } from "./read_range.ts";
import { SegmentError } from "./segment_error.ts";
import { decodeThrift, encodeThrift, type ThriftType } from "./thrift_compact.ts";

export const MAGIC: Buffer = Buffer.from("PAR1");
/** Size of the CRC-32 before the footer. */
const FOOTER_CRC_BYTES = 4;
/** Size of the footer's length and the magic bytes. */
const TRAILER_BYTES = 8;

/**
 * Reads a footer as `type`, which declares all or part of FileMetaData (`parquet_format.ts`).
 * Returns it with the file offset of its CRC-32.
 * @throws {SegmentError} if the file is damaged or not a segment.
 */
export async function readFileMetaData<Value>(
  type: ThriftType<Value>,
  file: FileReader,
  sizeBytes: number,
): Promise<{ value: Value; start: number }> {
  const bytesMin = MAGIC.length + FOOTER_CRC_BYTES + TRAILER_BYTES;
  if (sizeBytes < bytesMin) throw new SegmentError(`file is too short: ${sizeBytes} bytes`);
  const opening = await readRange(file, 0, MAGIC.length);
  const trailer = await readRange(file, sizeBytes - TRAILER_BYTES, sizeBytes);
  if (!opening.equals(MAGIC)) throw new SegmentError("no Parquet magic at byte 0");
  const magicStart = sizeBytes - MAGIC.length;
  if (!trailer.subarray(-MAGIC.length).equals(MAGIC)) {
    throw new SegmentError(`no Parquet magic at byte ${magicStart}`);
  }
  const footerBytes = trailer.readUInt32LE();
  const start = sizeBytes - TRAILER_BYTES - footerBytes - FOOTER_CRC_BYTES;
  if (start < MAGIC.length || footerBytes > SEGMENT_FOOTER_BYTES_MAX) {
    throw new SegmentError(`invalid footer size before byte ${magicStart}: ${footerBytes} bytes`);
  }
  const checked = await readRange(file, start, sizeBytes);
  if (footerCrc(checked) !== checked.readUInt32LE()) {
    throw new SegmentError(`the footer at byte ${start} does not match its CRC-32`);
  }
  const bytes = checked.subarray(FOOTER_CRC_BYTES, -TRAILER_BYTES);
  const { value, end } = decodeThrift(type, bytes);
  if (end !== bytes.length) throw new SegmentError("the footer has trailing bytes");
  return { value, start };
}

/** Encodes the end of a file, starting with the CRC-32. */
export function encodeFooter(metadata: FileMetaData): Buffer {
  const footer = encodeThrift(FILE_META_DATA, metadata);
  const lengthStart = FOOTER_CRC_BYTES + footer.length;
  const bytes = Buffer.concat([Buffer.alloc(FOOTER_CRC_BYTES), footer, Buffer.alloc(4), MAGIC]);
  bytes.writeUInt32LE(footer.length, lengthStart);
  bytes.writeUInt32LE(footerCrc(bytes), 0);
  return bytes;
}

/** @param bytes the end of the file, starting with the CRC-32. */
function footerCrc(bytes: Buffer): number {
  return crc32(bytes.subarray(FOOTER_CRC_BYTES, -MAGIC.length));
}
