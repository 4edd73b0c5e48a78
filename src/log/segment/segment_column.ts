/**
 * Decodes one column of one row group as a whole, or the values of some of its rows. All stay where
 * they were decompressed to; what comes out is where each begins and ends.
 */
import type { Buffer } from "node:buffer";
import {
  ColumnPages,
  newPlaces,
  type Page,
  type PageBlock,
  type Places,
  spreadPlaces,
} from "../parquet/column_pages.ts";
import { ABSENT, type ColumnValues } from "../parquet/column_values.ts";
import { DecodeMemory } from "../parquet/decode_memory.ts";
import { COPY_MARGIN_BYTES, viewFor } from "../line/line_bytes.ts";
import type { ColumnName } from "./segment_schema.ts";

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

class ColumnDecoder {
  readonly #pages: ColumnPages;
  /** The rows that are wanted; undefined for all. */
  readonly #wanted: readonly number[] | undefined;
  /** How many of the wanted rows have been found. */
  #found = 0;
  /** Decompressed pages, one after the other. */
  readonly #bytes: Buffer;
  readonly #uncompressedBytes: number;
  #filledBytes = 0;
  readonly #places: Places;
  #dictionary: Places = newPlaces(0);

  constructor(
    name: ColumnName,
    chunk: Buffer,
    uncompressedBytes: number,
    rows: number,
    { rows: wanted, memory = new DecodeMemory() }: DecodeOptions,
  ) {
    this.#pages = new ColumnPages(name, chunk, rows);
    this.#wanted = wanted;
    this.#uncompressedBytes = uncompressedBytes;
    this.#bytes = memory.take(uncompressedBytes + COPY_MARGIN_BYTES);
    const values = wanted?.length ?? rows;
    this.#places = { starts: memory.takeWords(values), ends: memory.takeWords(values) };
  }

  decode(): ColumnValues {
    for (let page = this.#pages.next(); page !== null; page = this.#pages.next()) {
      if (page.isDictionary) this.#readDictionary(page);
      else if (this.#wanted === undefined) this.#readPage(page);
      else this.#pickFrom(page, wantedIn(this.#wanted, this.#found, page));
    }
    return { bytes: this.#bytes, view: viewFor(this.#bytes), ...this.#places };
  }

  #readDictionary(page: Page): void {
    const { start, end } = this.#decompress(page);
    this.#dictionary = newPlaces(page.values);
    this.#pages.findPlain(this.#bytes, start, end, this.#dictionary, 0, page.values);
  }

  #readPage(page: Page): void {
    const { firstRow, values, isPlain } = page;
    const levels = this.#pages.levels(page);
    const { start, end } = this.#decompress(page);
    if (isPlain) {
      this.#pages.findPlain(this.#bytes, start, end, this.#places, firstRow, values);
    } else {
      const { starts, ends } = this.#places;
      const known = this.#dictionary;
      const codes = this.#codes(start, end, values);
      for (let value = 0; value < values; value++) {
        starts[firstRow + value] = known.starts[codes[value]!]!;
        ends[firstRow + value] = known.ends[codes[value]!]!;
      }
    }
    if (levels !== null) spreadPlaces(this.#places, levels, firstRow, values);
  }

  /** Finds the values of some rows of a page. */
  #pickFrom(page: Page, rows: readonly number[]): void {
    if (rows.length === 0) return;
    const levels = this.#pages.levels(page);
    const places = levels === null ? rows : placesOf(rows, levels);
    if (page.isPlain) {
      const take = (start: number, end: number) => this.#take(start, end);
      this.#pages.pickPlain(this.#bytes, this.#block(page), places, take);
    } else {
      const { start, end } = this.#decompress(page);
      const codes = this.#codes(start, end, page.values);
      const { starts, ends } = this.#dictionary;
      for (const place of places) {
        if (place < 0) this.#take(ABSENT, ABSENT);
        else this.#take(starts[codes[place]!]!, ends[codes[place]!]!);
      }
    }
  }

  #codes(start: number, end: number, count: number): Uint16Array {
    return this.#pages.codes(this.#bytes, start, end, count, this.#dictionary.starts.length);
  }

  /** Decompresses a page behind those before. */
  #decompress(page: Page): PageBlock {
    const place = this.#block(page);
    place.block.readAll();
    return place;
  }

  /** A page behind those before, of which nothing is decompressed yet. */
  #block(page: Page): PageBlock {
    const start = this.#filledBytes;
    const end = start + page.sizeBytes;
    if (end > this.#uncompressedBytes) {
      throw this.#pages.malformed(`has a page of ${page.sizeBytes} bytes`);
    }
    this.#filledBytes = end;
    return { start, end, block: this.#pages.block(page, this.#bytes.subarray(start, end)) };
  }

  /** The place of the next wanted value. */
  #take(start: number, end: number): void {
    this.#places.starts[this.#found] = start;
    this.#places.ends[this.#found] = end;
    this.#found += 1;
  }
}

/** The wanted rows from the place `from` on that are in a page, counted from its first. */
function wantedIn(wanted: readonly number[], from: number, { firstRow, rows }: Page): number[] {
  const inPage: number[] = [];
  for (let next = from; next < wanted.length; next++) {
    const row = wanted[next]! - firstRow;
    if (row >= rows) break;
    inPage.push(row);
  }
  return inPage;
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
