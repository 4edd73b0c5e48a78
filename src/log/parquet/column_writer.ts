/**
 * Writes the pages of one column of a row group, compressed, and collects what the footer and the
 * page indexes say of them: data pages of version 2, after a dictionary page where values are
 * indices.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { type Compare, mergeStatistics } from "./column_statistics.ts";
import type { FileSink } from "./file_sink.ts";
import { pageCrc } from "./page_header.ts";
import {
  COLUMN_INDEX,
  type ColumnChunk,
  OFFSET_INDEX,
  type OffsetIndex,
  PAGE_HEADER,
  type SchemaElement,
  type Statistics,
} from "./parquet_format.ts";
import { encodeRleHybrid } from "./rle_hybrid.ts";
import { snappyCompress } from "./snappy.ts";
import { encodeThrift } from "./thrift_compact.ts";

/** Rows of a page. */
export interface PageRows {
  rows: number;
  /** For an optional column: for each row 1 where it has a value, 0 where it has none. */
  levels?: Uint8Array;
  /** Of the values; on all pages of a column or on none. */
  statistics?: Statistics | undefined;
}

/** A column that has been written. */
export interface WrittenColumn {
  /** What the footer says of it, yet without its indexes, which come behind all row groups. */
  chunk: ColumnChunk;
  columnIndex: Buffer | null;
  offsetIndex: Buffer;
}

const NO_LEVELS = new Uint8Array();
const NO_VALUE = new Uint8Array();

export class ColumnWriter {
  readonly #sink: FileSink;
  readonly #element: SchemaElement;
  readonly #start: number;
  #dataStart: number | null = null;
  #hasDictionary = false;
  #uncompressedBytes = 0;
  #rows = 0;
  readonly #pages: OffsetIndex["page_locations"][number][] = [];
  readonly #statistics: Statistics[] = [];

  constructor(sink: FileSink, element: SchemaElement) {
    this.#sink = sink;
    this.#element = element;
    this.#start = sink.offset;
  }

  /** The values, plain, that the indices of the page to come stand for. */
  writeDictionary(values: Uint8Array, count: number): void {
    assert(this.#dataStart === null, "a dictionary comes before all data");
    this.#hasDictionary = true;
    const compressed = snappyCompress(values);
    const header = encodeThrift(PAGE_HEADER, {
      type: "DICTIONARY_PAGE",
      uncompressed_page_size: values.length,
      compressed_page_size: compressed.length,
      crc: pageCrc(compressed),
      dictionary_page_header: { num_values: count, encoding: "PLAIN" },
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
    const header = encodeThrift(PAGE_HEADER, {
      type: "DATA_PAGE_V2",
      uncompressed_page_size: uncompressedBytes,
      compressed_page_size: encodedLevels.length + compressed.length,
      crc: pageCrc(encodedLevels, compressed),
      data_page_header_v2: {
        num_values: rows,
        num_nulls: levels === undefined ? 0 : rows - levels.reduce((sum, level) => sum + level, 0),
        num_rows: rows,
        encoding: this.#hasDictionary ? "RLE_DICTIONARY" : "PLAIN",
        definition_levels_byte_length: encodedLevels.length,
        repetition_levels_byte_length: 0,
        is_compressed: true,
      },
    });
    this.#append(header, uncompressedBytes, encodedLevels, compressed);
    this.#pages.push({
      offset,
      compressed_page_size: this.#sink.offset - offset,
      first_row_index: this.#rows,
    });
    if (statistics !== undefined) this.#statistics.push(statistics);
    this.#rows += rows;
  }

  /** To be called once. @param compare the order of the values. */
  finish(compare: Compare): WrittenColumn {
    const { type, name } = this.#element;
    assert(type !== undefined && this.#dataStart !== null, "a column has a type and a page");
    const statistics = this.#statistics;
    const hasStatistics = statistics.length > 0;
    assert(!hasStatistics || statistics.length === this.#pages.length, "on all pages or on none");
    return {
      chunk: {
        file_offset: this.#start,
        meta_data: {
          type,
          encodings: this.#hasDictionary ? ["PLAIN", "RLE_DICTIONARY"] : ["PLAIN"],
          path_in_schema: [name],
          codec: "SNAPPY",
          num_values: this.#rows,
          total_uncompressed_size: this.#uncompressedBytes,
          total_compressed_size: this.#sink.offset - this.#start,
          data_page_offset: this.#dataStart,
          dictionary_page_offset: this.#hasDictionary ? this.#start : undefined,
          statistics: hasStatistics ? mergeStatistics(statistics, compare) : undefined,
        },
      },
      columnIndex: hasStatistics ? encodeColumnIndex(statistics) : null,
      offsetIndex: encodeThrift(OFFSET_INDEX, { page_locations: this.#pages }),
    };
  }

  #append(header: Buffer, uncompressedBytes: number, ...page: readonly Uint8Array[]): void {
    this.#uncompressedBytes += header.length + uncompressedBytes;
    for (const part of [header, ...page]) this.#sink.append(part);
  }
}

function encodeColumnIndex(pages: readonly Statistics[]): Buffer {
  return encodeThrift(COLUMN_INDEX, {
    null_pages: pages.map(({ min_value }) => min_value === undefined),
    min_values: pages.map(({ min_value }) => min_value ?? NO_VALUE),
    max_values: pages.map(({ max_value }) => max_value ?? NO_VALUE),
    // A row group has too few pages to search them by halves.
    boundary_order: "UNORDERED",
    null_counts: pages.map(({ null_count }) => null_count),
  });
}
