/**
 * The header of a page (parquet.thrift, PageHeader), of the two kinds that segments have:
 * dictionary pages of plain values, and data pages of version 2. The CRC-32 in it is over all bytes
 * of the page behind the header, as they are in the file.
 */
import type { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { SegmentError } from "./segment_error.ts";
import {
  formatThrift,
  i32,
  readThrift,
  struct,
  type ThriftFields,
  type ThriftStruct,
  TRUE,
} from "./thrift_compact.ts";

/** How values are written: themselves, or as indices into a dictionary. */
export type Encoding = "PLAIN" | "RLE_DICTIONARY";

/** Parquet's numbers of them. */
export const ENCODING_NUMBERS: Readonly<Record<Encoding, number>> = { PLAIN: 0, RLE_DICTIONARY: 8 };

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
  encoding: Encoding;
  /** Size of the definition levels, which are in front of the values and not compressed. */
  levelBytes: number;
}

export type PageHeader = DictionaryPageHeader | DataPageHeader;

const DICTIONARY_PAGE = 2;
const DATA_PAGE_V2 = 3;

/** Numbers of the fields of PageHeader, then those of the structs in it. */
const TYPE = 1;
const UNCOMPRESSED_BYTES = 2;
const COMPRESSED_BYTES = 3;
const CRC = 4;
const DICTIONARY = 7;
const DATA_V2 = 8;

const DICTIONARY_VALUES = 1;
const DICTIONARY_ENCODING = 2;

const DATA_VALUES = 1;
const DATA_NULLS = 2;
const DATA_ROWS = 3;
const DATA_ENCODING = 4;
const DATA_LEVEL_BYTES = 5;
const DATA_REPETITION_BYTES = 6;
const DATA_IS_COMPRESSED = 7;

export function formatPageHeader(page: PageHeader): Buffer {
  const isDictionary = page.kind === "dictionary";
  return formatThrift({
    [TYPE]: i32(isDictionary ? DICTIONARY_PAGE : DATA_PAGE_V2),
    [UNCOMPRESSED_BYTES]: i32(page.uncompressedBytes),
    [COMPRESSED_BYTES]: i32(page.compressedBytes),
    // Thrift has no unsigned integers.
    [CRC]: i32(page.crc | 0),
    ...(isDictionary
      ? {
        [DICTIONARY]: struct({
          [DICTIONARY_VALUES]: i32(page.values),
          [DICTIONARY_ENCODING]: i32(ENCODING_NUMBERS.PLAIN),
        }),
      }
      : { [DATA_V2]: struct(dataFields(page)) }),
  });
}

function dataFields({ rows, nulls, encoding, levelBytes }: DataPageHeader): ThriftFields {
  return {
    [DATA_VALUES]: i32(rows),
    [DATA_NULLS]: i32(nulls),
    [DATA_ROWS]: i32(rows),
    [DATA_ENCODING]: i32(ENCODING_NUMBERS[encoding]),
    [DATA_LEVEL_BYTES]: i32(levelBytes),
    [DATA_REPETITION_BYTES]: i32(0),
    [DATA_IS_COMPRESSED]: TRUE,
  };
}

/**
 * Reads the header at `start` of the pages in [0, end) of `bytes`; returns it and where the page
 * behind it starts. All that it says has the right type, and its sizes and counts fit one another
 * and the bytes that are left; the rest (rows of the row group, CRC) is the caller's to check.
 * @throws {SegmentError}
 */
export function readPageHeader(
  bytes: Buffer,
  start: number,
  end: number,
): { header: PageHeader; pageStart: number } {
  const { struct: fields, end: pageStart } = readThrift(bytes, start, end);
  const sizes = {
    compressedBytes: count(fields, COMPRESSED_BYTES, end - pageStart),
    uncompressedBytes: count(fields, UNCOMPRESSED_BYTES),
    crc: fields.int(CRC) >>> 0,
  };
  const type = fields.int(TYPE);
  if (type === DICTIONARY_PAGE) {
    return { header: dictionaryHeader(sizes, fields.struct(DICTIONARY)), pageStart };
  }
  if (type !== DATA_PAGE_V2) throw new SegmentError(`a page of type ${type}`);
  return { header: dataHeader(sizes, fields.struct(DATA_V2)), pageStart };
}

function dictionaryHeader(sizes: PageSizes, fields: ThriftStruct): DictionaryPageHeader {
  if (encodingOf(fields.int(DICTIONARY_ENCODING)) !== "PLAIN") {
    throw new SegmentError("a dictionary that is not plain");
  }
  return { kind: "dictionary", ...sizes, values: count(fields, DICTIONARY_VALUES) };
}

function dataHeader(sizes: PageSizes, fields: ThriftStruct): DataPageHeader {
  const rows = count(fields, DATA_ROWS);
  const levelsMax = Math.min(sizes.compressedBytes, sizes.uncompressedBytes);
  const isRight = fields.int(DATA_VALUES) === rows && fields.int(DATA_REPETITION_BYTES) === 0 &&
    fields.bool(DATA_IS_COMPRESSED);
  if (!isRight) throw new SegmentError("a data page that is not one of a segment");
  return {
    kind: "data",
    ...sizes,
    rows,
    nulls: count(fields, DATA_NULLS, rows),
    encoding: encodingOf(fields.int(DATA_ENCODING)),
    levelBytes: count(fields, DATA_LEVEL_BYTES, levelsMax),
  };
}

function encodingOf(number: number): Encoding {
  if (number === ENCODING_NUMBERS.PLAIN) return "PLAIN";
  if (number === ENCODING_NUMBERS.RLE_DICTIONARY) return "RLE_DICTIONARY";
  throw new SegmentError(`values in the encoding ${number}`);
}

function count(fields: ThriftStruct, field: number, max: number = 2 ** 31 - 1): number {
  const value = fields.int(field);
  if (value < 0 || value > max) {
    throw new SegmentError(`a page header with ${value} as field ${field}`);
  }
  return value;
}

/** The CRC-32 of a page that is given in parts. */
export function pageCrc(...parts: readonly Uint8Array[]): number {
  return parts.reduce((crc, part) => crc32(part, crc), 0);
}
