/**
 * Decodes a column chunk, one column of one row group, in the encodings that the writer uses: data
 * pages of version 2 with plain values or dictionary indices, compressed with Snappy. Headers are
 * checked before they are used. Values stay in the decompressed pages; the result has offsets.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { COPY_MARGIN_BYTES, viewFor } from "../line/line_bytes.ts";
import { ABSENT, type ColumnValues } from "./column_values.ts";
import { PAGE_HEADER } from "./parquet_format.ts";
import { decodeRleHybrid } from "./rle_hybrid.ts";
import { SegmentError } from "./segment_error.ts";
import { snappyDecompress } from "./snappy.ts";
import { decodeThrift, type ThriftValue } from "./thrift_compact.ts";

const LENGTH_BYTES = 4;
/** A definition level: 0 where the row has no value, else 1. */
const LEVEL_BITS = 1;

/** How the values of a column are stored. */
export interface ColumnFormat {
  name: string;
  /** Size of each value; null where each value has a length in front of it. */
  fixedBytes: number | null;
  /** Longest value that has a length. */
  valueBytesMax: number;
  /** Whether a row may have no value. */
  isOptional: boolean;
}

/** The pages of a column chunk. */
export interface ChunkPages {
  bytes: Buffer;
  /** Where they start in the file. */
  offset: number;
  rows: number;
  /** Upper bound of their uncompressed size. */
  uncompressedBytes: number;
}

/** Offsets of values. */
type Places = Pick<ColumnValues, "starts" | "ends">;

/** The values of all rows of a chunk. @throws {SegmentError} */
export function decodeColumn(format: ColumnFormat, pages: ChunkPages): ColumnValues {
  return new ColumnDecoder(format, pages).decode();
}

class ColumnDecoder {
  readonly #format: ColumnFormat;
  readonly #pages: ChunkPages;
  /** Decompressed pages, one after the other. */
  readonly #bytes: Buffer;
  #filledBytes = 0;
  readonly #places: Places;
  /** Rows decoded so far. */
  #rows = 0;
  #dictionary: Places | null = null;

  constructor(format: ColumnFormat, pages: ChunkPages) {
    this.#format = format;
    this.#pages = pages;
    this.#bytes = Buffer.allocUnsafeSlow(pages.uncompressedBytes + COPY_MARGIN_BYTES);
    this.#places = newPlaces(pages.rows);
  }

  decode(): ColumnValues {
    const { bytes, rows } = this.#pages;
    for (let at = 0; at < bytes.length;) at = this.#readPage(at);
    if (this.#rows !== rows) throw this.#malformed(`has ${this.#rows} values`);
    return { bytes: this.#bytes, view: viewFor(this.#bytes), ...this.#places };
  }

  /** Decodes a page; returns where it ends. */
  #readPage(headerStart: number): number {
    const { header, end: start } = this.#readHeader(headerStart);
    const end = start + header.compressed_page_size;
    const crc = pageCrc(this.#pages.bytes.subarray(start, end));
    if (crc !== header.crc) {
      const page = `the page at byte ${this.#pages.offset + start}`;
      throw this.#malformed(`${page} has the CRC-32 ${crc >>> 0}, not ${header.crc >>> 0}`);
    }
    const { dictionary_page_header: dictionary, data_page_header_v2: data } = header;
    const sizeBytes = header.uncompressed_page_size;
    if (header.type === "DICTIONARY_PAGE") {
      this.#readDictionary(dictionary!.num_values, sizeBytes, start, end);
    } else {
      this.#readValues(data!, sizeBytes, start, end);
    }
    return end;
  }

  #readHeader(start: number): { header: PageHeader; end: number } {
    try {
      return readPageHeader(this.#pages.bytes, start);
    } catch (error) {
      if (!(error instanceof SegmentError)) throw error;
      throw this.#malformed(`${error.message}, at byte ${this.#pages.offset + start}`);
    }
  }

  #readDictionary(values: number, sizeBytes: number, start: number, end: number): void {
    const isFirst = this.#dictionary === null && this.#rows === 0;
    if (!isFirst || values > this.#pages.rows) throw this.#malformed("has a malformed dictionary");
    const at = this.#decompress(start, end, sizeBytes);
    this.#dictionary = newPlaces(values);
    this.#findPlain(this.#dictionary, 0, values, at);
  }

  #readValues(page: DataPageHeader, sizeBytes: number, start: number, end: number): void {
    const { num_rows: rows, num_nulls: nulls, encoding } = page;
    const levelBytes = page.definition_levels_byte_length;
    const { isOptional } = this.#format;
    const isRight = rows <= this.#pages.rows - this.#rows &&
      (isOptional || nulls === 0 && levelBytes === 0);
    if (!isRight) throw this.#malformed("has a malformed page");
    const count = rows - nulls;
    const valuesStart = start + levelBytes;
    const levels = isOptional ? this.#readLevels(start, valuesStart, rows, count) : null;
    const at = this.#decompress(valuesStart, end, sizeBytes - levelBytes);
    if (encoding === "PLAIN") this.#findPlain(this.#places, this.#rows, count, at);
    else this.#findIndexed(count, at);
    if (levels !== null) spreadPlaces(this.#places, levels, this.#rows, count);
    this.#rows += rows;
  }

  /** Decompresses bytes after those of the previous pages; returns their offset. */
  #decompress(start: number, end: number, sizeBytes: number): number {
    const at = this.#filledBytes;
    if (sizeBytes > this.#pages.uncompressedBytes - at) {
      throw this.#malformed(`has a page of ${sizeBytes} uncompressed bytes`);
    }
    this.#filledBytes += sizeBytes;
    const { bytes } = this.#pages;
    snappyDecompress(bytes.subarray(start, end), this.#bytes.subarray(at, this.#filledBytes));
    return at;
  }

  /** Finds the plain values of the current page, which starts at `start`. */
  #findPlain({ starts, ends }: Places, first: number, count: number, start: number): void {
    const { fixedBytes } = this.#format;
    let at = start;
    for (let value = first; value < first + count; value++) {
      let sizeBytes = fixedBytes;
      if (sizeBytes === null) {
        sizeBytes = this.#lengthAt(at);
        at += LENGTH_BYTES;
      }
      starts[value] = at;
      at += sizeBytes;
      ends[value] = at;
    }
    if (at !== this.#filledBytes) throw this.#malformed("has a page of another size");
  }

  /** Reads the length in front of a plain value. */
  #lengthAt(at: number): number {
    const bytes = this.#bytes;
    if (at + LENGTH_BYTES > this.#filledBytes) throw this.#malformed("is cut off");
    const sizeBytes = (bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16 |
      bytes[at + 3]! << 24) >>> 0;
    if (sizeBytes > this.#format.valueBytesMax) {
      throw this.#malformed(`has a value of ${sizeBytes} bytes`);
    }
    return sizeBytes;
  }

  /** Finds the values of the current page by its dictionary indices, which start at `start`. */
  #findIndexed(count: number, start: number): void {
    const dictionary = this.#dictionary;
    const end = this.#filledBytes;
    if (dictionary === null) throw this.#malformed("has no dictionary");
    if (start === end) throw this.#malformed("has no dictionary indices");
    const indices = new Uint16Array(count);
    const bitWidth = this.#bytes[start]!;
    if (decodeRleHybrid(this.#bytes, start + 1, end, bitWidth, indices) !== end) {
      throw this.#malformed("has a page of another size");
    }
    const known = dictionary.starts.length;
    const { starts, ends } = this.#places;
    for (let value = 0; value < count; value++) {
      const index = indices[value]!;
      if (index >= known) throw this.#malformed(`has the unknown dictionary index ${index}`);
      starts[this.#rows + value] = dictionary.starts[index]!;
      ends[this.#rows + value] = dictionary.ends[index]!;
    }
  }

  /** The definition levels of a page. */
  #readLevels(start: number, end: number, rows: number, values: number): Uint16Array {
    const levels = new Uint16Array(rows);
    const levelsEnd = decodeRleHybrid(this.#pages.bytes, start, end, LEVEL_BITS, levels);
    let present = 0;
    for (const level of levels) present += level;
    if (levelsEnd !== end || present !== values) throw this.#malformed("has malformed levels");
    return levels;
  }

  #malformed(fault: string): SegmentError {
    return new SegmentError(`${this.#format.name}: ${fault}`);
  }
}

/** Moves the offsets of values, from row `first` on, to the rows that have one. */
function spreadPlaces(
  { starts, ends }: Places,
  levels: Uint16Array,
  first: number,
  values: number,
): void {
  let value = first + values;
  for (let row = first + levels.length - 1; row >= first; row--) {
    const isPresent = levels[row - first] === 1;
    if (isPresent) value -= 1;
    starts[row] = isPresent ? starts[value]! : ABSENT;
    ends[row] = isPresent ? ends[value]! : ABSENT;
  }
}

function newPlaces(count: number): Places {
  return { starts: new Uint32Array(count), ends: new Uint32Array(count) };
}

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
