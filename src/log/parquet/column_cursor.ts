/**
 * Goes forward through one column of a row group, a page at a time: at any time one page is
 * decompressed, and the dictionary. The memory is used again for the next column that is opened.
 */
import { Buffer } from "node:buffer";
import { ColumnPages, newPlaces, type Page, type Places, spreadPlaces } from "./column_pages.ts";
import type { ColumnValues } from "./column_values.ts";
import { COPY_MARGIN_BYTES, viewFor } from "../line/line_bytes.ts";
import type { ColumnName } from "../segment/segment_schema.ts";

/** A decompressed page and where values are in it, in memory that grows as pages need it. */
class PageMemory {
  bytes: Buffer = Buffer.alloc(0);
  view: DataView = viewFor(this.bytes);
  places: Places = newPlaces(0);

  get sizeBytes(): number {
    return this.bytes.length + this.places.starts.byteLength + this.places.ends.byteLength;
  }

  reserve(sizeBytes: number, values: number): void {
    if (sizeBytes + COPY_MARGIN_BYTES > this.bytes.length) {
      this.bytes = Buffer.allocUnsafeSlow(sizeBytes + COPY_MARGIN_BYTES);
      this.view = viewFor(this.bytes);
    }
    if (values > this.places.starts.length) this.places = newPlaces(values);
  }
}

export class ColumnCursor {
  readonly #name: ColumnName;
  #pages: ColumnPages;
  /** Most that all its pages have in memory. */
  #uncompressedBytes = 0;
  readonly #dictionary = new PageMemory();
  #dictionaryValues = 0;
  readonly #plain = new PageMemory();
  /** The page at hand; the places of its values are those of `#plain`, wherever the bytes are. */
  #page: Page | null = null;

  constructor(name: ColumnName) {
    this.#name = name;
    this.#pages = new ColumnPages(name, Buffer.alloc(0), 0);
  }

  /** Bytes of its memory. */
  get sizeBytes(): number {
    return this.#dictionary.sizeBytes + this.#plain.sizeBytes;
  }

  /** Starts anew, before the first row; as for `decodeColumn()`. */
  open(chunk: Buffer, uncompressedBytes: number, rows: number): void {
    this.#pages = new ColumnPages(this.#name, chunk, rows);
    this.#uncompressedBytes = uncompressedBytes;
    this.#dictionaryValues = 0;
    this.#page = null;
  }

  /**
   * Goes to the page of a row that is not before the page at hand; returns the row behind its last
   * one. @throws {SegmentError}
   */
  goTo(row: number): number {
    let page = this.#page;
    if (page === null || row >= page.firstRow + page.rows) {
      page = this.#nextWith(row);
      this.#read(page);
      this.#page = page;
    }
    return page.firstRow + page.rows;
  }

  /** The values of the rows [first, end) of the page at hand, valid until another one is. */
  values(first: number, end: number): ColumnValues {
    const from = first - this.#page!.firstRow;
    const to = end - this.#page!.firstRow;
    const { bytes, view } = this.#page!.isPlain ? this.#plain : this.#dictionary;
    const { starts, ends } = this.#plain.places;
    return { bytes, view, starts: starts.subarray(from, to), ends: ends.subarray(from, to) };
  }

  /** The next page that has a row. */
  #nextWith(row: number): Page {
    for (let page = this.#pages.next(); page !== null; page = this.#pages.next()) {
      if (page.isDictionary) this.#readDictionary(page);
      else if (row < page.firstRow + page.rows) return page;
    }
    throw this.#pages.malformed(`has no row ${row}`);
  }

  #readDictionary(page: Page): void {
    const { values } = page;
    this.#decompress(page, this.#dictionary, values);
    const { bytes, places } = this.#dictionary;
    this.#pages.findPlain(bytes, 0, page.sizeBytes, places, 0, values);
    this.#dictionaryValues = values;
  }

  #read(page: Page): void {
    const { rows, values, isPlain, sizeBytes } = page;
    const levels = this.#pages.levels(page);
    this.#decompress(page, this.#plain, rows);
    const { bytes, places } = this.#plain;
    if (isPlain) {
      this.#pages.findPlain(bytes, 0, sizeBytes, places, 0, values);
    } else {
      const { starts, ends } = this.#dictionary.places;
      const codes = this.#pages.codes(bytes, 0, sizeBytes, values, this.#dictionaryValues);
      for (let value = 0; value < values; value++) {
        places.starts[value] = starts[codes[value]!]!;
        places.ends[value] = ends[codes[value]!]!;
      }
    }
    if (levels !== null) spreadPlaces(places, levels, 0, values);
  }

  #decompress(page: Page, into: PageMemory, values: number): void {
    const { sizeBytes } = page;
    if (sizeBytes > this.#uncompressedBytes) {
      throw this.#pages.malformed(`has a page of ${sizeBytes} bytes`);
    }
    into.reserve(sizeBytes, values);
    this.#pages.block(page, into.bytes.subarray(0, sizeBytes)).readAll();
  }
}
