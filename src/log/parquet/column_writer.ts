/**
 * Writes the pages of one column of a row group, compressed, and collects what the footer and the
 * page indexes say of them: data pages of version 2, after a dictionary page where values are
 * indices.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { type Compare, mergeStatistics, type Statistics } from "./column_statistics.ts";
import type { ColumnMetadata } from "./file_metadata.ts";
import type { FileSink } from "./file_sink.ts";
import { encodePageHeader, type Encoding, pageCrc } from "./page_header.ts";
import { encodeColumnIndex, encodeOffsetIndex, type PageLocation } from "./page_index.ts";
import { encodeRleHybrid } from "./rle_hybrid.ts";
import { snappyCompress } from "./snappy.ts";

/** Rows of a page. */
export interface PageRows {
  rows: number;
  /** For an optional column: for each row 1 where it has a value, 0 where it has none. */
  levels?: Uint8Array;
  /** Of the values; on all pages of a column or on none. */
  statistics?: Statistics | undefined;
}

/** What of a written column is still to be written, behind all row groups. */
export interface ColumnIndexes {
  columnIndex: Buffer | null;
  offsetIndex: Buffer;
}

const NO_LEVELS = new Uint8Array();

export class ColumnWriter {
  readonly #sink: FileSink;
  readonly #start: number;
  #dataStart: number | null = null;
  #encoding: Encoding = "PLAIN";
  #uncompressedBytes = 0;
  #rows = 0;
  readonly #pages: PageLocation[] = [];
  readonly #statistics: Statistics[] = [];

  constructor(sink: FileSink) {
    this.#sink = sink;
    this.#start = sink.offset;
  }

  /** The values, plain, that the indices of the page to come stand for. */
  writeDictionary(values: Uint8Array, count: number): void {
    assert(this.#dataStart === null, "a dictionary comes before all data");
    this.#encoding = "RLE_DICTIONARY";
    const compressed = snappyCompress(values);
    const header = encodePageHeader({
      kind: "dictionary",
      compressedBytes: compressed.length,
      uncompressedBytes: values.length,
      crc: pageCrc(compressed),
      values: count,
    });
    this.#append(header, values.length, compressed);
  }

  /** A page of indices into a dictionary of `count` values. */
  writeIndices(indices: Int32Array, count: number, statistics?: Statistics): void {
    const bitWidth = 32 - Math.clz32(count - 1);
    const encoded = encodeRleHybrid(indices, bitWidth);
    const values = Buffer.concat([Buffer.of(bitWidth), encoded]);
    this.writePage(values, { rows: indices.length, statistics });
  }

  /** A page of plain values, or of indices. */
  writePage(values: Uint8Array, { rows, levels, statistics }: PageRows): void {
    const offset = this.#sink.offset;
    this.#dataStart ??= offset;
    const encodedLevels = levels === undefined ? NO_LEVELS : encodeRleHybrid(levels, 1);
    const compressed = snappyCompress(values);
    const uncompressedBytes = encodedLevels.length + values.length;
    const header = encodePageHeader({
      kind: "data",
      compressedBytes: encodedLevels.length + compressed.length,
      uncompressedBytes,
      crc: pageCrc(encodedLevels, compressed),
      rows,
      nulls: levels === undefined ? 0 : rows - levels.reduce((sum, level) => sum + level, 0),
      encoding: this.#encoding,
      levelBytes: encodedLevels.length,
    });
    this.#append(header, uncompressedBytes, encodedLevels, compressed);
    this.#pages.push({ offset, bytes: this.#sink.offset - offset, firstRow: this.#rows });
    if (statistics !== undefined) this.#statistics.push(statistics);
    this.#rows += rows;
  }

  /** To be called once. @param compare the order of the values. */
  finish(compare: Compare): { metadata: ColumnMetadata; indexes: ColumnIndexes } {
    assert(this.#dataStart !== null, "a column has a page");
    const hasStatistics = this.#statistics.length > 0;
    assert(!hasStatistics || this.#statistics.length === this.#pages.length, "on all or on none");
    return {
      metadata: {
        start: this.#start,
        end: this.#sink.offset,
        dataStart: this.#dataStart,
        uncompressedBytes: this.#uncompressedBytes,
        statistics: hasStatistics ? mergeStatistics(this.#statistics, compare) : null,
        bloomFilter: null,
        columnIndex: null,
        offsetIndex: null,
      },
      indexes: {
        columnIndex: hasStatistics ? encodeColumnIndex(this.#statistics) : null,
        offsetIndex: encodeOffsetIndex(this.#pages),
      },
    };
  }

  #append(header: Buffer, uncompressedBytes: number, ...page: readonly Uint8Array[]): void {
    this.#uncompressedBytes += header.length + uncompressedBytes;
    for (const part of [header, ...page]) this.#sink.append(part);
  }
}
