/**
 * The pages of one column of one row group, in the encodings that the writer uses: data pages of
 * version 2; plain values, or codes into a dictionary. What a header says is checked before
 * anything is done by it; values are found, and stay where they were decompressed to.
 */
import type { Buffer } from "node:buffer";
import type { PageHeader } from "hyparquet";
import { parquetHeader } from "hyparquet/src/column.js";
import { ROW_GROUP_EVENTS_MAX } from "../../limits.ts";
import { ABSENT, type ColumnValues } from "./column_values.ts";
import { decodeRunLengths } from "./run_length.ts";
import { decoding, SegmentError } from "./segment_error.ts";
import { columnElement, type ColumnName, TEXT_BYTES_MAX } from "../segment/segment_schema.ts";
import { SnappyBlock } from "./snappy.ts";
import { thriftStructEnd } from "./thrift_bounds.ts";

const LENGTH_BYTES = 4;
const INT64_BYTES = 8;
/** What is decompressed beyond a value that is looked at: short values are found together. */
const READ_AHEAD_BYTES = 2048;

/** The codes, and the levels, of the page at hand. */
const codesOfPage = new Uint16Array(ROW_GROUP_EVENTS_MAX);
const levelsOfPage = new Uint16Array(ROW_GROUP_EVENTS_MAX);

/** Where values are. */
export type Places = Pick<ColumnValues, "starts" | "ends">;

/** A page as its header describes it. */
export interface Page {
  isDictionary: boolean;
  /** Place of its first row in the row group. */
  firstRow: number;
  /** 0 for a dictionary. */
  rows: number;
  /** Fewer than rows where some have none. */
  values: number;
  /** Whether the values themselves are in it, not codes. */
  isPlain: boolean;
  /** Where in the chunk the levels start, the values behind them, and where those end. */
  levelsStart: number;
  start: number;
  end: number;
  /** What the values have decompressed. */
  sizeBytes: number;
}

/** A page that starts at a place in the memory it is decompressed to. */
export interface PageBlock {
  start: number;
  end: number;
  block: SnappyBlock;
}

/** Called with the place of each value that was asked for, in their order. */
export type TakePlace = (start: number, end: number) => void;

export class ColumnPages {
  readonly #name: ColumnName;
  readonly #chunk: Buffer;
  readonly #rows: number;
  readonly #isOptional: boolean;
  /** Size of each value; null where values have their own. */
  readonly #fixedBytes: number | null;
  readonly #valueBytesMax: number;
  /** Place in the chunk of the next page. */
  #at = 0;
  #passedRows = 0;
  #hasDictionary = false;

  /**
   * @param chunk the bytes of all pages.
   * @param rows of the column.
   */
  constructor(name: ColumnName, chunk: Buffer, rows: number) {
    const { type, type_length, repetition_type } = columnElement(name);
    this.#name = name;
    this.#chunk = chunk;
    this.#rows = rows;
    this.#isOptional = repetition_type === "OPTIONAL";
    this.#fixedBytes = type === "INT64" ? INT64_BYTES : type_length ?? null;
    this.#valueBytesMax = TEXT_BYTES_MAX[name] ?? 0;
  }

  /** The next page; null when all rows have been passed. @throws {SegmentError} */
  next(): Page | null {
    if (this.#at >= this.#chunk.length) {
      if (this.#passedRows === this.#rows) return null;
      throw this.malformed(`has ${this.#passedRows} values`);
    }
    const header = this.#header();
    const end = this.#at + header.compressed_page_size;
    const page = this.#pageOf(header, end);
    this.#at = end;
    this.#passedRows += page.rows;
    return page;
  }

  /** A page that is to be decompressed to `out`. */
  block({ start, end }: Page, out: Buffer): SnappyBlock {
    return new SnappyBlock(this.#chunk.subarray(start, end), out);
  }

  /** Finds the plain values that fill [start, end). @throws {SegmentError} */
  findPlain(bytes: Buffer, start: number, end: number, into: Places, from: number, count: number) {
    let at = start;
    for (let value = from; value < from + count; value++) {
      let sizeBytes = this.#fixedBytes;
      if (sizeBytes === null) {
        sizeBytes = this.#sizeAt(bytes, at, end);
        at += LENGTH_BYTES;
      }
      into.starts[value] = at;
      at += sizeBytes;
      into.ends[value] = at;
    }
    if (at !== end) throw this.malformed("has a page of another size");
  }

  /**
   * Finds those at some places among the plain values of a page, -1 standing for none, and
   * decompresses it as far as that takes. @throws {SegmentError}
   */
  pickPlain(
    bytes: Buffer,
    { start, end, block }: PageBlock,
    places: readonly number[],
    take: TakePlace,
  ): void {
    const reach = (at: number) => {
      if (at > end) throw this.malformed("is cut off");
      if (at > start + block.readBytes) block.read(Math.min(at + READ_AHEAD_BYTES, end) - start);
    };
    let at = start;
    let passed = 0;
    for (const place of places) {
      if (place < 0) {
        take(ABSENT, ABSENT);
      } else if (this.#fixedBytes === null) {
        for (; passed < place; passed++) {
          reach(at + LENGTH_BYTES);
          at += LENGTH_BYTES + this.#sizeAt(bytes, at, end);
        }
        reach(at + LENGTH_BYTES);
        const valueStart = at + LENGTH_BYTES;
        const valueEnd = valueStart + this.#sizeAt(bytes, at, end);
        reach(valueEnd);
        take(valueStart, valueEnd);
      } else {
        const valueStart = start + place * this.#fixedBytes;
        reach(valueStart + this.#fixedBytes);
        take(valueStart, valueStart + this.#fixedBytes);
      }
    }
  }

  /**
   * The codes in [start, end), valid until those of another page are asked for: all are known to a
   * dictionary of that many values. @throws {SegmentError}
   */
  codes(bytes: Buffer, start: number, end: number, count: number, known: number): Uint16Array {
    if (start >= end) throw this.malformed("has no codes");
    const codes = codesOfPage.subarray(0, count);
    const codesEnd = decodeRunLengths(bytes, start + 1, end, bytes[start]!, codes);
    if (codesEnd !== end) throw this.malformed("has a page of another size");
    for (let value = 0; value < count; value++) {
      if (codes[value]! >= known) throw this.malformed(`has the unknown code ${codes[value]}`);
    }
    return codes;
  }

  /**
   * Which rows of a page have a value, 1 for those: valid until asked for another page. Null where
   * all have one. @throws {SegmentError}
   */
  levels({ levelsStart, start, rows, values }: Page): Uint16Array | null {
    if (!this.#isOptional) return null;
    const levels = levelsOfPage.subarray(0, rows);
    const end = decodeRunLengths(this.#chunk, levelsStart, start, 1, levels);
    let present = 0;
    for (let row = 0; row < rows; row++) present += levels[row]!;
    if (end !== start || present !== values) throw this.malformed("has malformed levels");
    return levels;
  }

  malformed(fault: string): SegmentError {
    return new SegmentError(`${this.#name}: ${fault}`);
  }

  #header(): PageHeader {
    const { buffer, byteOffset, length } = this.#chunk;
    const end = thriftStructEnd(this.#chunk, this.#at, length);
    const view = new DataView(buffer, byteOffset, length);
    const header = decoding(this.#name, () => parquetHeader({ view, offset: this.#at }));
    this.#at = end;
    if (!isSize(header.compressed_page_size, length - end)) {
      throw this.malformed(`has a page of ${header.compressed_page_size} bytes`);
    }
    return header;
  }

  #pageOf(header: PageHeader, end: number): Page {
    const page = header.type === "DICTIONARY_PAGE"
      ? this.#dictionaryPage(header, end)
      : header.type === "DATA_PAGE_V2"
      ? this.#dataPage(header, end)
      : null;
    if (page === null) throw this.malformed(`has a page of type ${header.type}`);
    if (!isSize(page.sizeBytes, Number.MAX_SAFE_INTEGER)) {
      throw this.malformed(`has a page of ${page.sizeBytes} bytes`);
    }
    return page;
  }

  #dictionaryPage(header: PageHeader, end: number): Page {
    const { num_values: values, encoding } = header.dictionary_page_header ?? {};
    const isRight = !this.#hasDictionary && this.#passedRows === 0 && encoding === "PLAIN" &&
      isSize(values, this.#rows);
    if (!isRight) throw this.malformed("has a malformed dictionary");
    this.#hasDictionary = true;
    return {
      isDictionary: true,
      firstRow: 0,
      rows: 0,
      values,
      isPlain: true,
      levelsStart: this.#at,
      start: this.#at,
      end,
      sizeBytes: header.uncompressed_page_size,
    };
  }

  #dataPage(header: PageHeader, end: number): Page {
    const page = header.data_page_header_v2;
    const firstRow = this.#passedRows;
    const rows = page?.num_rows;
    const levelBytes = page?.definition_levels_byte_length;
    const isRight = page !== undefined && isSize(rows, this.#rows - firstRow) &&
      page.num_values === rows && isSize(page.num_nulls, this.#isOptional ? rows : 0) &&
      page.repetition_levels_byte_length === 0 && page.is_compressed !== false &&
      isSize(levelBytes, this.#isOptional ? end - this.#at : 0);
    if (!isRight) throw this.malformed("has a malformed page");
    const isPlain = page.encoding === "PLAIN";
    if (!isPlain && page.encoding !== "RLE_DICTIONARY") {
      throw this.malformed(`has values in ${page.encoding}`);
    }
    if (!isPlain && !this.#hasDictionary) throw this.malformed("has no dictionary");
    return {
      isDictionary: false,
      firstRow,
      rows,
      values: rows - page.num_nulls,
      isPlain,
      levelsStart: this.#at,
      start: this.#at + levelBytes,
      end,
      sizeBytes: header.uncompressed_page_size - levelBytes,
    };
  }

  /** What the length in front of a plain value says. */
  #sizeAt(bytes: Buffer, at: number, end: number): number {
    if (at + LENGTH_BYTES > end) throw this.malformed("is cut off");
    const sizeBytes = (bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16 |
      bytes[at + 3]! << 24) >>> 0;
    if (sizeBytes > this.#valueBytesMax) {
      throw this.malformed(`has a value of ${sizeBytes} bytes`);
    }
    return sizeBytes;
  }
}

/** Moves the places of values, `from` on, to the rows that have one. */
export function spreadPlaces(
  { starts, ends }: Places,
  levels: Uint16Array,
  from: number,
  values: number,
): void {
  let value = from + values;
  for (let row = from + levels.length - 1; row >= from; row--) {
    const isPresent = levels[row - from] === 1;
    if (isPresent) value -= 1;
    starts[row] = isPresent ? starts[value]! : ABSENT;
    ends[row] = isPresent ? ends[value]! : ABSENT;
  }
}

export function newPlaces(count: number): Places {
  return { starts: new Uint32Array(count), ends: new Uint32Array(count) };
}

/** Whether what a header says is a count from 0 to a bound. */
function isSize(value: unknown, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max;
}
