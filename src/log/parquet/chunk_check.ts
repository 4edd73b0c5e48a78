/**
 * Checks the CRC-32 and the pages of a column chunk before `hyparquet` decodes it. The writer emits
 * an optional dictionary page and one v2 data page, which has a value for each row; no other layout
 * is accepted. After these checks, decoding takes memory and time in proportion to the bounds.
 */
import { crc32 } from "node:zlib";
import { SegmentError } from "../storage/errors.ts";
import type { FileRange } from "../storage/storage.ts";
import { parseThrift, type ThriftStruct } from "./thrift.ts";

/** Values of the enumerations in parquet.thrift. */
const DICTIONARY_PAGE = 2;
const DATA_PAGE_V2 = 3;
const PLAIN = 0;
const RLE_DICTIONARY = 8;
/** Width of a definition level: 1 for a row with a value, 0 for one without. */
const LEVEL_BITS = 1;
const INDEX_BITS_MAX = 32;
const GROUP_VALUES = 8;
/** Size of a copy in Snappy, by the kind of its tag; kind 0 is a literal. */
const COPY_BYTES = [0, 2, 3, 5];
/** The tag of a literal whose length follows it in one to four bytes. */
const LONG_LITERAL = 60 << 2;

/** Where a column chunk is, and what it must be; can be sent between threads. */
export interface ChunkPlace extends FileRange {
  /** Start of the data page; a dictionary page comes before it, if there is one. */
  dataStart: number;
  /** Maximum total size of the decompressed pages. */
  uncompressedBytes: number;
  crc: number;
}

/** @throws {SegmentError} if the chunk is altered, or has other pages than its footer describes. */
export function checkChunk(
  chunk: Uint8Array,
  place: ChunkPlace,
  rows: number,
  isOptional: boolean,
): void {
  const crc = crc32(chunk);
  if (crc !== place.crc) throw new SegmentError(`has CRC-32 ${crc}, expected ${place.crc}`);
  const hasDictionary = place.dataStart !== place.start;
  let at = 0;
  if (hasDictionary) {
    const { header, end } = parsePage(chunk, at, place);
    const dictionary = structAt(header, 7);
    const count = numberAt(dictionary, 1);
    const isValid = numberAt(header, 1) === DICTIONARY_PAGE && numberAt(dictionary, 2) === PLAIN &&
      count > 0 && count <= rows;
    if (!isValid) throw new SegmentError("has a malformed dictionary page");
    at = end;
  }
  const { header, start, end } = parsePage(chunk, at, place);
  const data = structAt(header, 8);
  const nulls = numberAt(data, 2);
  const levelsBytes = numberAt(data, 5);
  const isValid = numberAt(header, 1) === DATA_PAGE_V2 && end === chunk.length &&
    numberAt(data, 1) === rows && numberAt(data, 3) === rows &&
    numberAt(data, 4) === (hasDictionary ? RLE_DICTIONARY : PLAIN) &&
    (isOptional ? nulls >= 0 && nulls <= rows : nulls === 0 && levelsBytes === 0) &&
    levelsBytes >= 0 && start + levelsBytes <= end && numberAt(data, 6) === 0 &&
    numberAt(data, 7, 1) === 1;
  if (!isValid) throw new SegmentError("has a malformed data page");
  if (isOptional) checkHybrid(chunk.subarray(start, start + levelsBytes), LEVEL_BITS, rows);
}

/** Checks a decompressed page of dictionary indices: their width, then `rows` indices. */
export function checkIndices(page: Uint8Array, rows: number): void {
  const [bits = INDEX_BITS_MAX + 1] = page;
  if (bits > INDEX_BITS_MAX) throw new SegmentError("has malformed dictionary indices");
  checkHybrid(page.subarray(1), bits, rows);
}

/**
 * Checks literals in a page compressed by Snappy (google/snappy, format_description.txt). A length
 * of 2 GiB or more is negative for `hyparquet`, which would go back and might never end.
 */
export function checkLiterals(page: Uint8Array): void {
  let at = page.findIndex((byte) => byte < 0x80) + 1;
  while (at < page.length) {
    const tag = page[at]!;
    if ((tag & 3) !== 0) {
      at += COPY_BYTES[tag & 3]!;
    } else if (tag < LONG_LITERAL) {
      at += 2 + (tag >> 2);
    } else {
      const sizeBytes = (tag - LONG_LITERAL >> 2) + 1;
      let literalBytes = 1;
      for (let i = 1; i <= sizeBytes; i++) literalBytes += page[at + i]! * 2 ** (8 * i - 8);
      at += 1 + sizeBytes + literalBytes;
    }
  }
  if (at !== page.length) throw new SegmentError("has malformed Snappy");
}

/**
 * Checks that an RLE / bit-packed hybrid (parquet-format, Encodings.md) has `count` values, without
 * decoding it. A crafted run may claim a billion.
 */
function checkHybrid(bytes: Uint8Array, bits: number, count: number): void {
  let at = 0;
  for (let seen = 0; seen < count;) {
    let head = 0;
    let byte = 0x80;
    for (let shift = 0; byte >= 0x80 && shift < 32; shift += 7) {
      byte = bytes[at++] ?? 0xff;
      head += (byte & 0x7f) * 2 ** shift;
    }
    const run = Math.floor(head / 2);
    const isPacked = head % 2 === 1;
    at += isPacked ? run * bits : Math.ceil(bits / 8);
    seen += isPacked ? run * GROUP_VALUES : run;
    const countMax = isPacked ? count + GROUP_VALUES - 1 : count;
    if (byte >= 0x80 || run === 0 || at > bytes.length || seen > countMax) {
      throw new SegmentError("has a malformed run of levels or dictionary indices");
    }
  }
}

function parsePage(chunk: Uint8Array, at: number, { uncompressedBytes }: ChunkPlace) {
  const { struct: header, end: start } = parseThrift(chunk, at);
  const sizeBytes = numberAt(header, 2);
  const end = start + numberAt(header, 3);
  if (end < start || end > chunk.length || sizeBytes < 0 || sizeBytes > uncompressedBytes) {
    throw new SegmentError("has a page that exceeds its bounds");
  }
  return { header, start, end };
}

function structAt(struct: ThriftStruct, id: number): ThriftStruct {
  const value = struct.get(id);
  return value instanceof Map ? value : new Map();
}

/** Returns an integer field. @param missing value of an absent field; by default, none is valid. */
function numberAt(struct: ThriftStruct, id: number, missing: number = NaN): number {
  const value = struct.get(id) ?? missing;
  return typeof value === "number" ? value : NaN;
}
