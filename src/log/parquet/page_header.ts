/** Reads the headers of dictionary pages of plain values, and of data pages of version 2. */
import type { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { PAGE_HEADER } from "./parquet_format.ts";
import { SegmentError } from "./segment_error.ts";
import { decodeThrift, type ThriftValue } from "./thrift_compact.ts";

export type PageHeader = ThriftValue<typeof PAGE_HEADER>;
/** Of a page of version 2, which is compressed except for the levels in front. */
export type DataPageHeader = NonNullable<PageHeader["data_page_header_v2"]>;

/**
 * Reads the page header at `start`; returns it and where it ends. It has the struct of its type and
 * its sizes fit each other and `bytes`; the caller checks rows and CRC-32. @throws {SegmentError}
 */
export function readPageHeader(bytes: Buffer, start: number): { header: PageHeader; end: number } {
  const { value: header, end } = decodeThrift(PAGE_HEADER, bytes, start);
  const { type, dictionary_page_header: dictionary, data_page_header_v2: data } = header;
  const levelBytesMax = Math.min(header.compressed_page_size, header.uncompressed_page_size);
  const isRight = header.compressed_page_size <= bytes.length - end &&
    (type === "DICTIONARY_PAGE" ? dictionary !== undefined : isRightData(data, levelBytesMax));
  if (!isRight) throw new SegmentError("a malformed page header");
  return { header, end };
}

function isRightData(data: DataPageHeader | undefined, levelBytesMax: number): boolean {
  return data !== undefined && data.num_values === data.num_rows &&
    data.num_nulls <= data.num_rows && data.is_compressed &&
    data.repetition_levels_byte_length === 0 &&
    data.definition_levels_byte_length <= levelBytesMax;
}

/** The CRC-32 of a page after its header, in parts; signed, as Thrift integers are. */
export function pageCrc(...parts: readonly Uint8Array[]): number {
  return parts.reduce((crc, part) => crc32(part, crc), 0) | 0;
}
