/**
 * The end of a segment file: a CRC-32, the Parquet footer, its length and the magic bytes. The
 * CRC-32 covers footer and length. Other readers ignore it, as the footer has no reference to it.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { type FileMetaData, parquetMetadata } from "hyparquet";
import { SEGMENT_FOOTER_BYTES_MAX } from "../../limits.ts";
import { RAW_VALUES } from "../parquet/column_reader.ts";
import { parseThrift } from "../parquet/thrift.ts";
import { readRange } from "../storage/read_range.ts";
import { SegmentError } from "../storage/segment_error.ts";
import type { FileReader } from "../storage/storage.ts";

/** Every Parquet file starts and ends with these bytes. */
export const MAGIC: Buffer = Buffer.from("PAR1");
/** Size of the CRC-32 before the footer. */
export const FOOTER_CRC_BYTES = 4;
/** Size of the footer's length and the magic bytes. */
export const TRAILER_BYTES = 8;

/**
 * Reads a footer. Returns it with the file offset of its CRC-32.
 * @throws {SegmentError} if the file is damaged or not a segment.
 */
export async function readFileMetaData(
  file: FileReader,
  sizeBytes: number,
): Promise<{ metadata: FileMetaData; start: number }> {
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
  const footer = checked.subarray(FOOTER_CRC_BYTES);
  if (footerCrc(footer) !== checked.readUInt32LE()) {
    throw new SegmentError(`the footer at byte ${start} does not match its CRC-32`);
  }
  return { metadata: parseFooter(footer, footerBytes), start };
}

function parseFooter(footer: Buffer, footerBytes: number): FileMetaData {
  const { end } = parseThrift(footer, 0);
  if (end !== footerBytes) throw new SegmentError("the footer has trailing bytes");
  try {
    return parquetMetadata(footer, { parsers: RAW_VALUES, geoparquet: false });
  } catch (cause) {
    throw new SegmentError(`malformed footer: ${(cause as Error).message}`, { cause });
  }
}

/** @param footer the footer, its length and the magic bytes. */
export function footerCrc(footer: Uint8Array): number {
  return crc32(footer.subarray(0, -MAGIC.length));
}
