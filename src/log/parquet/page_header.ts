/**
 * The header of a page, of the two kinds that segments have: dictionary pages of plain values, and
 * data pages of version 2. The CRC-32 in it is over all bytes of the page behind the header, as
 * they are in the file.
 */
import type { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { PAGE_HEADER } from "./parquet_format.ts";
import { SegmentError } from "./segment_error.ts";
import { decodeThrift, encodeThrift, type ThriftValue } from "./thrift_compact.ts";

interface PageSizes {
  /** Of the page behind its header, in the file. */
  compressedBytes: number;
  uncompressedBytes: number;
  /** CRC-32 of those bytes in the file, unsigned. */
  crc: number;
}

export interface DictionaryPageHeader extends PageSizes {
  kind: "dictionary";
  values: number;
}

export interface DataPageHeader extends PageSizes {
  kind: "data";
  rows: number;
  /** How many of the rows have no value. */
  nulls: number;
  /** How values are written: themselves, or as indices into a dictionary. */
  encoding: "PLAIN" | "RLE_DICTIONARY";
  /** Size of the definition levels, which are in front of the values and not compressed. */
  levelBytes: number;
}

export type PageHeader = DictionaryPageHeader | DataPageHeader;

export function encodePageHeader(page: PageHeader): Buffer {
  return encodeThrift(PAGE_HEADER, {
    type: page.kind === "dictionary" ? "DICTIONARY_PAGE" : "DATA_PAGE_V2",
    uncompressed_page_size: page.uncompressedBytes,
    compressed_page_size: page.compressedBytes,
    // Thrift has no unsigned integers.
    crc: page.crc | 0,
    ...(page.kind === "dictionary"
      ? { dictionary_page_header: { num_values: page.values, encoding: "PLAIN" } }
      : { data_page_header_v2: dataPageHeader(page) }),
  });
}

function dataPageHeader({ rows, nulls, encoding, levelBytes }: DataPageHeader) {
  return {
    num_values: rows,
    num_nulls: nulls,
    num_rows: rows,
    encoding,
    definition_levels_byte_length: levelBytes,
    repetition_levels_byte_length: 0,
    is_compressed: true,
  };
}

/**
 * The page header that starts at `start` of `bytes`, and where it ends. Its sizes and counts fit
 * one another and the bytes behind it; the caller checks the rows and the CRC-32.
 * @throws {SegmentError}
 */
export function readPageHeader(bytes: Buffer, start: number): { header: PageHeader; end: number } {
  const { value, end } = decodeThrift(PAGE_HEADER, bytes, start);
  const header = headerOf(value);
  if (header === null || header.compressedBytes > bytes.length - end) {
    throw new SegmentError("a malformed page header");
  }
  return { header, end };
}

/** Null when it is none of a page that segments have. */
function headerOf(page: ThriftValue<typeof PAGE_HEADER>): PageHeader | null {
  const { dictionary_page_header: dictionary, data_page_header_v2: data } = page;
  const sizes: PageSizes = {
    compressedBytes: page.compressed_page_size,
    uncompressedBytes: page.uncompressed_page_size,
    crc: page.crc >>> 0,
  };
  if (page.type === "DICTIONARY_PAGE") {
    return dictionary ? { kind: "dictionary", ...sizes, values: dictionary.num_values } : null;
  }
  if (data === undefined) return null;
  const { num_rows: rows, num_nulls: nulls, definition_levels_byte_length: levelBytes } = data;
  const isRight = data.num_values === rows && nulls <= rows && data.is_compressed &&
    data.repetition_levels_byte_length === 0 &&
    levelBytes <= Math.min(sizes.compressedBytes, sizes.uncompressedBytes);
  return isRight
    ? { kind: "data", ...sizes, rows, nulls, encoding: data.encoding, levelBytes }
    : null;
}

/** The CRC-32 of a page that is given in parts. */
export function pageCrc(...parts: readonly Uint8Array[]): number {
  return parts.reduce((crc, part) => crc32(part, crc), 0);
}
