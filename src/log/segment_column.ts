/**
 * Decodes one column of one row group: its pages, in the encodings that the writer uses (data pages
 * of version 2; plain values, or codes into a dictionary). Values stay where they were decompressed
 * to; what comes out is where each begins and ends.
 */
import type { Buffer } from "node:buffer";
import type { PageHeader } from "hyparquet";
import { parquetHeader } from "hyparquet/src/column.js";
import { ABSENT, type ColumnValues } from "./column_values.ts";
import { ROW_GROUP_EVENTS_MAX } from "../limits.ts";
import { DecodeMemory } from "./decode_memory.ts";
import { viewFor } from "./line_bytes.ts";
import { decodeRunLengths } from "./run_length.ts";
import { decoding, SegmentError } from "./segment_error.ts";
import { columnElement, type ColumnName, TEXT_BYTES_MAX } from "./segment_schema.ts";
import { SnappyBlock } from "./snappy.ts";
import { thriftStructEnd } from "./thrift_bounds.ts";

const LENGTH_BYTES = 4;
const INT64_BYTES = 8;
/** What is decompressed beyond a value that is looked at: short values are found together. */
const READ_AHEAD_BYTES = 2048;

/** The codes, and the levels, of the page at hand. */
const codesOfPage = new Uint16Array(ROW_GROUP_EVENTS_MAX);
const levelsOfPage = new Uint16Array(ROW_GROUP_EVENTS_MAX);

/** What of a column is decoded, and where to. */
export interface DecodeOptions {
  /**
   * The rows, increasing, whose values are wanted, one after the other: pages without any are
   * passed over. All when left out.
   */
  rows?: readonly number[] | undefined;
  /** Memory for the values; new when left out. */
  memory?: DecodeMemory | undefined;
}

/**
 * @param chunk the bytes of all its pages.
 * @param uncompressedBytes what they have in memory, at the most.
 * @param rows of the column.
 * @throws {SegmentError}
 */
export function decodeColumn(
  name: ColumnName,
  chunk: Buffer,
  uncompressedBytes: number,
  rows: number,
  options: DecodeOptions,
): ColumnValues {
  return new ColumnDecoder(name, chunk, uncompressedBytes, rows, options).decode();
}

/** A page that starts at a place in the memory of the column. */
interface PageBlock {
  start: number;
  block: SnappyBlock;
}

type Places = Pick<ColumnValues, "starts" | "ends">;

class ColumnDecoder {
  readonly #name: ColumnName;
  readonly #chunk: Buffer;
  /** The rows that are wanted; undefined for all. */
  readonly #wanted: readonly number[] | undefined;
  /** How many of the wanted rows have been found. */
  #found = 0;
  readonly #rows: number;
  readonly #isOptional: boolean;
  /** Size of each value; null where values have their own. */
  readonly #fixedBytes: number | null;
  readonly #valueBytesMax: number;
  /** Decompressed pages, one after the other. */
  readonly #bytes: Buffer;
  #filledBytes = 0;
  readonly #places: Places;
  #filledRows = 0;
  #dictionary: Places | null = null;
  /** Place in the chunk of the next page. */
  #at = 0;

  constructor(
    name: ColumnName,
    chunk: Buffer,
    uncompressedBytes: number,
    rows: number,
    { rows: wanted, memory = new DecodeMemory() }: DecodeOptions,
  ) {
    const { type, type_length, repetition_type } = columnElement(name);
    this.#name = name;
    this.#chunk = chunk;
    this.#wanted = wanted;
    this.#isOptional = repetition_type === "OPTIONAL";
    this.#fixedBytes = type === "INT64" ? INT64_BYTES : type_length ?? null;
    this.#valueBytesMax = TEXT_BYTES_MAX[name] ?? 0;
    this.#rows = rows;
    this.#bytes = memory.take(uncompressedBytes);
    const values = wanted?.length ?? rows;
    this.#places = { starts: memory.takeWords(values), ends: memory.takeWords(values) };
  }

  decode(): ColumnValues {
    while (this.#at < this.#chunk.length) this.#page();
    if (this.#filledRows !== this.#rows) {
      throw this.#malformed(`has ${this.#filledRows} values`);
    }
    return { bytes: this.#bytes, view: viewFor(this.#bytes), ...this.#places };
  }

  #page(): void {
    const header = this.#header();
    const end = this.#at + header.compressed_page_size;
    if (header.type === "DICTIONARY_PAGE") this.#dictionaryPage(header, end);
    else if (header.type === "DATA_PAGE_V2") this.#dataPage(header, end);
    else throw this.#malformed(`has a page of type ${header.type}`);
    this.#at = end;
  }

  #header(): PageHeader {
    const { buffer, byteOffset, length } = this.#chunk;
    const end = thriftStructEnd(this.#chunk, this.#at, length);
    const view = new DataView(buffer, byteOffset, length);
    const header = decoding(this.#name, () => parquetHeader({ view, offset: this.#at }));
    this.#at = end;
    if (!isSize(header.compressed_page_size, length - end)) {
      throw this.#malformed(`has a page of ${header.compressed_page_size} bytes`);
    }
    return header;
  }

  #dictionaryPage(header: PageHeader, end: number): void {
    const { num_values: values, encoding } = header.dictionary_page_header ?? {};
    const isRight = this.#dictionary === null && this.#filledRows === 0 && encoding === "PLAIN" &&
      isSize(values, this.#rows);
    if (!isRight) throw this.#malformed("has a malformed dictionary");
    const start = this.#decompress(this.#at, end, header.uncompressed_page_size);
    this.#dictionary = newPlaces(values);
    this.#readPlain(start, this.#dictionary, 0, values);
  }

  #dataPage(header: PageHeader, end: number): void {
    const page = header.data_page_header_v2;
    const firstRow = this.#filledRows;
    const rows = page?.num_rows;
    const levelBytes = page?.definition_levels_byte_length;
    const isRight = page !== undefined && isSize(rows, this.#rows - firstRow) &&
      page.num_values === rows && isSize(page.num_nulls, this.#isOptional ? rows : 0) &&
      page.repetition_levels_byte_length === 0 && page.is_compressed !== false &&
      isSize(levelBytes, this.#isOptional ? end - this.#at : 0);
    if (!isRight) throw this.#malformed("has a malformed page");
    this.#filledRows += rows;
    const wanted = this.#wantedIn(firstRow, rows);
    if (wanted?.length === 0) return;
    const valuesStart = this.#at + levelBytes;
    const sizeBytes = header.uncompressed_page_size - levelBytes;
    const values = rows - page.num_nulls;
    const levels = this.#isOptional ? this.#levels(valuesStart, rows, values) : null;
    if (page.encoding !== "PLAIN" && page.encoding !== "RLE_DICTIONARY") {
      throw this.#malformed(`has values in ${page.encoding}`);
    }
    const isPlain = page.encoding === "PLAIN";
    if (wanted === null) {
      const start = this.#decompress(valuesStart, end, sizeBytes);
      if (isPlain) this.#readPlain(start, this.#places, firstRow, values);
      else this.#readCodes(start, firstRow, values);
      if (levels !== null) this.#spread(levels, firstRow, values);
    } else {
      const places = levels === null ? wanted : placesOf(wanted, levels);
      if (isPlain) this.#pickPlain(this.#block(valuesStart, end, sizeBytes), places);
      else this.#pickCodes(this.#decompress(valuesStart, end, sizeBytes), values, places);
    }
  }

  /** The wanted ones of the rows of a page, counted from its first; null when all are. */
  #wantedIn(firstRow: number, rows: number): number[] | null {
    if (this.#wanted === undefined) return null;
    const inPage: number[] = [];
    for (let next = this.#found; next < this.#wanted.length; next++) {
      const row = this.#wanted[next]! - firstRow;
      if (row >= rows) break;
      inPage.push(row);
    }
    return inPage;
  }

  /** Decompresses a page behind those before; returns where it starts. */
  #decompress(from: number, to: number, sizeBytes: number): number {
    const { start, block } = this.#block(from, to, sizeBytes);
    block.readAll();
    return start;
  }

  /** A page behind those before, of which nothing is decompressed yet. */
  #block(from: number, to: number, sizeBytes: number): PageBlock {
    const start = this.#filledBytes;
    if (!isSize(sizeBytes, this.#bytes.length - start)) {
      throw this.#malformed(`has a page of ${sizeBytes} bytes`);
    }
    this.#filledBytes += sizeBytes;
    const input = this.#chunk.subarray(from, to);
    const block = new SnappyBlock(input, this.#bytes.subarray(start, this.#filledBytes));
    return { start, block };
  }

  /** Finds the plain values of the page that was decompressed last. */
  #readPlain(start: number, into: Places, from: number, count: number): void {
    const end = this.#filledBytes;
    let at = start;
    for (let value = from; value < from + count; value++) {
      let sizeBytes = this.#fixedBytes;
      if (sizeBytes === null) {
        sizeBytes = this.#sizeAt(at, end);
        at += LENGTH_BYTES;
      }
      into.starts[value] = at;
      at += sizeBytes;
      into.ends[value] = at;
    }
    if (at !== end) throw this.#malformed("has a page of another size");
  }

  /**
   * Finds those at some places among the plain values of a page, -1 standing for none, and
   * decompresses it as far as that takes.
   */
  #pickPlain({ start, block }: PageBlock, places: readonly number[]): void {
    const end = this.#filledBytes;
    const reach = (at: number) => {
      if (at > end) throw this.#malformed("is cut off");
      if (at > start + block.readBytes) block.read(Math.min(at + READ_AHEAD_BYTES, end) - start);
    };
    let at = start;
    let passed = 0;
    for (const place of places) {
      if (place < 0) {
        this.#take(ABSENT, ABSENT);
      } else if (this.#fixedBytes === null) {
        for (; passed < place; passed++) {
          reach(at + LENGTH_BYTES);
          at += LENGTH_BYTES + this.#sizeAt(at, end);
        }
        reach(at + LENGTH_BYTES);
        const valueStart = at + LENGTH_BYTES;
        const valueEnd = valueStart + this.#sizeAt(at, end);
        reach(valueEnd);
        this.#take(valueStart, valueEnd);
      } else {
        const valueStart = start + place * this.#fixedBytes;
        reach(valueStart + this.#fixedBytes);
        this.#take(valueStart, valueStart + this.#fixedBytes);
      }
    }
  }

  /** What the length in front of a plain value says. */
  #sizeAt(at: number, end: number): number {
    if (at + LENGTH_BYTES > end) throw this.#malformed("is cut off");
    const bytes = this.#bytes;
    const sizeBytes = (bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16 |
      bytes[at + 3]! << 24) >>> 0;
    if (sizeBytes > this.#valueBytesMax) {
      throw this.#malformed(`has a value of ${sizeBytes} bytes`);
    }
    return sizeBytes;
  }

  /** The place of the next wanted value. */
  #take(start: number, end: number): void {
    this.#places.starts[this.#found] = start;
    this.#places.ends[this.#found] = end;
    this.#found += 1;
  }

  #readCodes(start: number, firstRow: number, count: number): void {
    const { codes, dictionary } = this.#codesOf(start, count);
    const { starts, ends } = this.#places;
    for (let value = 0; value < count; value++) {
      const code = codes[value]!;
      if (code >= dictionary.starts.length) throw this.#malformed(`has the unknown code ${code}`);
      starts[firstRow + value] = dictionary.starts[code]!;
      ends[firstRow + value] = dictionary.ends[code]!;
    }
  }

  #pickCodes(start: number, count: number, places: readonly number[]): void {
    const { codes, dictionary } = this.#codesOf(start, count);
    for (const place of places) {
      const code = codes[place];
      if (code === undefined) {
        this.#take(ABSENT, ABSENT);
      } else {
        if (code >= dictionary.starts.length) throw this.#malformed(`has the unknown code ${code}`);
        this.#take(dictionary.starts[code]!, dictionary.ends[code]!);
      }
    }
  }

  /** The codes of the page that was decompressed last, and the values that they stand for. */
  #codesOf(start: number, count: number): { codes: Uint16Array; dictionary: Places } {
    const dictionary = this.#dictionary;
    const end = this.#filledBytes;
    if (dictionary === null || start >= end) throw this.#malformed("has no dictionary");
    const codes = codesOfPage.subarray(0, count);
    const codesEnd = decodeRunLengths(this.#bytes, start + 1, end, this.#bytes[start]!, codes);
    if (codesEnd !== end) throw this.#malformed("has a page of another size");
    return { codes, dictionary };
  }

  /** Which rows of a page have a value: 1 for those. */
  #levels(levelsEnd: number, rows: number, values: number): Uint16Array {
    const levels = levelsOfPage.subarray(0, rows);
    const end = decodeRunLengths(this.#chunk, this.#at, levelsEnd, 1, levels);
    let present = 0;
    for (let row = 0; row < rows; row++) present += levels[row]!;
    if (end !== levelsEnd || present !== values) throw this.#malformed("has malformed levels");
    return levels;
  }

  /** Moves the values of an optional column to the rows that have one. */
  #spread(levels: Uint16Array, firstRow: number, values: number): void {
    const { starts, ends } = this.#places;
    let value = firstRow + values;
    for (let row = firstRow + levels.length - 1; row >= firstRow; row--) {
      const isPresent = levels[row - firstRow] === 1;
      if (isPresent) value -= 1;
      starts[row] = isPresent ? starts[value]! : ABSENT;
      ends[row] = isPresent ? ends[value]! : ABSENT;
    }
  }

  #malformed(fault: string): SegmentError {
    return new SegmentError(`${this.#name}: ${fault}`);
  }
}

function newPlaces(count: number): Places {
  return { starts: new Uint32Array(count), ends: new Uint32Array(count) };
}

/** Places of the values of some rows, increasing, among all values; -1 for a row without one. */
function placesOf(rows: readonly number[], levels: Uint16Array): number[] {
  let place = 0;
  let passed = 0;
  return rows.map((row) => {
    for (; passed < row; passed++) place += levels[passed]!;
    return levels[row] === 1 ? place : -1;
  });
}

/** Whether what a header says is a count from 0 to a bound. */
function isSize(value: unknown, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max;
}
