/**
 * Decodes a column chunk (one column of one row group) in the form that the writer produces: one
 * Snappy-compressed v2 data page, with plain values or with indices into a preceding dictionary
 * page. Headers are validated before use. Values stay in the decompressed page; the result holds
 * their offsets.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { viewFor } from "../line/line_bytes.ts";
import { decodeBitPacked } from "./bit_packed.ts";
import { ABSENT, type ColumnValues } from "./column_values.ts";
import { PAGE_HEADER, type PageHeader } from "./parquet_format.ts";
import { SegmentError } from "./segment_error.ts";
import { snappyDecompress } from "./snappy.ts";
import { decodeThrift } from "./thrift_compact.ts";

const LENGTH_BYTES = 4;
/** Bit width of a definition level, which is 1 if the row has a value, otherwise 0. */
const LEVEL_BITS = 1;

/** The encoding of a column's values. */
export interface ColumnFormat {
  name: string;
  /** Size of each value; null if each value has a length prefix. */
  fixedBytes: number | null;
  /** Maximum size of a length-prefixed value. */
  valueBytesMax: number;
  /** Whether a row may have no value. */
  isOptional: boolean;
}

/** The pages in a column chunk. */
export interface ChunkPages {
  bytes: Buffer;
  /** File offset. */
  offset: number;
  rows: number;
  /** Upper bound on the uncompressed size of the pages. */
  uncompressedBytes: number;
}

/** A page with a valid CRC-32. */
interface Page {
  header: PageHeader;
  /** Definition levels, stored uncompressed. */
  levels: Buffer;
  /** Decompressed. */
  content: Buffer;
  end: number;
}

/** Decodes all values in a chunk. @throws {SegmentError} */
export function decodeColumn(format: ColumnFormat, pages: ChunkPages): ColumnValues {
  const { bytes, rows } = pages;
  const first = readPage(pages, 0);
  const dictionary = first.header.dictionary_page_header;
  const page = dictionary === undefined ? first : readPage(pages, first.end);
  const data = page.header.data_page_header_v2;
  const encoding = dictionary === undefined ? "PLAIN" : "RLE_DICTIONARY";
  const isValid = data?.encoding === encoding && data.num_rows === rows &&
    page.end === bytes.length && (dictionary === undefined || dictionary.num_values <= rows);
  if (!isValid) throw new SegmentError("has malformed pages");
  if (dictionary === undefined) {
    const levels = format.isOptional ? decodeBitPacked(page.levels, rows, LEVEL_BITS) : null;
    return plainValues(format, page.content, rows, levels);
  }
  const values = plainValues(format, first.content, dictionary.num_values, null);
  return indexedValues(values, page.content, rows);
}

function readPage({ bytes, offset, uncompressedBytes }: ChunkPages, start: number): Page {
  const { value: header, end: levelsStart } = decodeThrift(PAGE_HEADER, bytes, start);
  const levelBytes = header.data_page_header_v2?.definition_levels_byte_length ?? 0;
  const valuesStart = levelsStart + levelBytes;
  const end = levelsStart + header.compressed_page_size;
  const sizeBytes = header.uncompressed_page_size - levelBytes;
  if (valuesStart > end || end > bytes.length || sizeBytes < 0 || sizeBytes > uncompressedBytes) {
    throw new SegmentError(`has a malformed page header at byte ${offset + start}`);
  }
  const crc = pageCrc(bytes.subarray(levelsStart, end));
  if (crc !== header.crc) {
    const page = `the page at byte ${offset + levelsStart}`;
    throw new SegmentError(`${page} has CRC-32 ${crc >>> 0}, expected ${header.crc >>> 0}`);
  }
  const content = Buffer.allocUnsafeSlow(sizeBytes);
  snappyDecompress(bytes.subarray(valuesStart, end), content);
  return { header, levels: bytes.subarray(levelsStart, valuesStart), content, end };
}

function indexedValues(dictionary: ColumnValues, content: Buffer, rows: number): ColumnValues {
  const [bitWidth] = content;
  if (bitWidth === undefined) throw new SegmentError("has no dictionary indices");
  const indices = decodeBitPacked(content.subarray(1), rows, bitWidth);
  const starts = new Uint32Array(rows);
  const ends = new Uint32Array(rows);
  for (let row = 0; row < rows; row++) {
    const index = indices[row]!;
    if (index >= dictionary.starts.length) {
      throw new SegmentError(`has an out-of-range dictionary index ${index}`);
    }
    starts[row] = dictionary.starts[index]!;
    ends[row] = dictionary.ends[index]!;
  }
  return { ...dictionary, starts, ends };
}

/** Locates the `count` plain values in a page. A row with level 0 has no value. */
function plainValues(
  { fixedBytes, valueBytesMax }: ColumnFormat,
  content: Buffer,
  count: number,
  levels: Uint16Array | null,
): ColumnValues {
  const starts = new Uint32Array(count);
  const ends = new Uint32Array(count);
  let at = 0;
  for (let value = 0; value < count; value++) {
    if (levels !== null && levels[value] === 0) {
      starts[value] = ends[value] = ABSENT;
      continue;
    }
    let sizeBytes = fixedBytes;
    if (sizeBytes === null) {
      sizeBytes = lengthAt(content, at, valueBytesMax);
      at += LENGTH_BYTES;
    }
    starts[value] = at;
    at += sizeBytes;
    ends[value] = at;
  }
  if (at !== content.length) throw new SegmentError("has a page of the wrong size");
  return { bytes: content, view: viewFor(content), starts, ends };
}

function lengthAt(content: Buffer, at: number, max: number): number {
  if (at + LENGTH_BYTES > content.length) throw new SegmentError("is truncated");
  const sizeBytes = (content[at]! | content[at + 1]! << 8 | content[at + 2]! << 16 |
    content[at + 3]! << 24) >>> 0;
  if (sizeBytes > max) throw new SegmentError(`has a ${sizeBytes}-byte value, more than ${max}`);
  return sizeBytes;
}

/** Returns the CRC-32 of a page without its header, signed like Thrift integers. */
export function pageCrc(...parts: readonly Uint8Array[]): number {
  return parts.reduce((crc, part) => crc32(part, crc), 0) | 0;
}
