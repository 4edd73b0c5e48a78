/**
 * The header of a page (parquet.thrift, PageHeader), of the two kinds that segments have:
 * dictionary pages of plain values, and data pages of version 2. The CRC-32 in it is over all bytes
 * of the page behind the header, as they are in the file.
 */
import type { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { SegmentError } from "./segment_error.ts";
import {
  encodeThrift,
  i32,
  readThrift,
  struct,
  type ThriftItem,
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

/** Numbers of the fields in each struct. */
const PAGE = { type: 1, uncompressedBytes: 2, compressedBytes: 3, crc: 4, dictionary: 7, data: 8 };
const DICTIONARY = { values: 1, encoding: 2 };
const DATA = {
  values: 1,
  nulls: 2,
  rows: 3,
  encoding: 4,
  levelBytes: 5,
  repetitionBytes: 6,
  isCompressed: 7,
};

export function encodePageHeader(page: PageHeader): Buffer {
  return encodeThrift({
    [PAGE.type]: i32(page.kind === "dictionary" ? DICTIONARY_PAGE : DATA_PAGE_V2),
    [PAGE.uncompressedBytes]: i32(page.uncompressedBytes),
    [PAGE.compressedBytes]: i32(page.compressedBytes),
    // Thrift has no unsigned integers.
    [PAGE.crc]: i32(page.crc | 0),
    [PAGE.dictionary]: page.kind === "dictionary" ? dictionaryItem(page) : undefined,
    [PAGE.data]: page.kind === "data" ? dataItem(page) : undefined,
  });
}

function dictionaryItem({ values }: DictionaryPageHeader): ThriftItem {
  return struct({
    [DICTIONARY.values]: i32(values),
    [DICTIONARY.encoding]: i32(ENCODING_NUMBERS.PLAIN),
  });
}

function dataItem({ rows, nulls, encoding, levelBytes }: DataPageHeader): ThriftItem {
  return struct({
    [DATA.values]: i32(rows),
    [DATA.nulls]: i32(nulls),
    [DATA.rows]: i32(rows),
    [DATA.encoding]: i32(ENCODING_NUMBERS[encoding]),
    [DATA.levelBytes]: i32(levelBytes),
    [DATA.repetitionBytes]: i32(0),
    [DATA.isCompressed]: TRUE,
  });
}

/**
 * The page header that starts at `start` of `bytes`, and where it ends. Its sizes and counts fit one
 * another and the bytes behind it; the rest (rows of the row group, CRC-32) is the caller's to check.
 * @throws {SegmentError}
 */
export function readPageHeader(bytes: Buffer, start: number): { header: PageHeader; end: number } {
  const { struct: fields, end } = readThrift(bytes, start);
  const sizes = {
    compressedBytes: count(fields, PAGE.compressedBytes, bytes.length - end),
    uncompressedBytes: count(fields, PAGE.uncompressedBytes),
    crc: fields.int(PAGE.crc) >>> 0,
  };
  const type = fields.int(PAGE.type);
  if (type === DICTIONARY_PAGE) {
    return { header: dictionaryHeader(sizes, fields.struct(PAGE.dictionary)), end };
  }
  if (type !== DATA_PAGE_V2) throw new SegmentError(`a page of type ${type}`);
  return { header: dataHeader(sizes, fields.struct(PAGE.data)), end };
}

function dictionaryHeader(sizes: PageSizes, fields: ThriftStruct): DictionaryPageHeader {
  if (encodingOf(fields.int(DICTIONARY.encoding)) !== "PLAIN") {
    throw new SegmentError("a dictionary that is not plain");
  }
  return { kind: "dictionary", ...sizes, values: count(fields, DICTIONARY.values) };
}

function dataHeader(sizes: PageSizes, fields: ThriftStruct): DataPageHeader {
  const rows = count(fields, DATA.rows);
  const levelsMax = Math.min(sizes.compressedBytes, sizes.uncompressedBytes);
  const isRight = fields.int(DATA.values) === rows && fields.int(DATA.repetitionBytes) === 0 &&
    fields.bool(DATA.isCompressed);
  if (!isRight) throw new SegmentError("a data page that is not one of a segment");
  return {
    kind: "data",
    ...sizes,
    rows,
    nulls: count(fields, DATA.nulls, rows),
    encoding: encodingOf(fields.int(DATA.encoding)),
    levelBytes: count(fields, DATA.levelBytes, levelsMax),
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
