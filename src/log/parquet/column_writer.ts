/**
 * Writes one column chunk: compressed data pages of version 2, after a dictionary page where values
 * are indices. Collects its entries of the footer and the page indexes.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
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
  /** Statistics of the values. A column that has them has one page. */
  statistics?: Statistics | undefined;
}

/** A column that has been written. */
export interface WrittenColumn {
  /** Its entry of the footer, without the offsets of its indexes, which follow all row groups. */
  chunk: ColumnChunk;
  columnIndex: Buffer | null;
  offsetIndex: Buffer;
}

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
  #statistics: Statistics | undefined;

  constructor(sink: FileSink, element: SchemaElement) {
    this.#sink = sink;
    this.#element = element;
    this.#start = sink.offset;
  }

  /**
   * Writes a dictionary page of `count` plain values, then a page of indices into it.
   * @param statistics of the values.
   */
  writeDictionary(
    values: Uint8Array,
    count: number,
    indices: Int32Array,
    statistics?: Statistics,
  ): void {
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
    const bitWidth = 32 - Math.clz32(count - 1);
    const encoded = Buffer.concat([Buffer.of(bitWidth), encodeRleHybrid(indices, bitWidth)]);
    this.writePage(encoded, { rows: indices.length, statistics });
  }

  /** Writes a page of plain values, or of indices. */
  writePage(values: Uint8Array, { rows, levels, statistics }: PageRows): void {
    const offset = this.#sink.offset;
    this.#dataStart ??= offset;
    const encodedLevels = levels === undefined ? NO_VALUE : encodeRleHybrid(levels, 1);
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
    this.#statistics = statistics;
    this.#rows += rows;
  }

  /** Call once, after the last page. */
  finish(): WrittenColumn {
    const { type, name } = this.#element;
    assert(type !== undefined && this.#dataStart !== null, "a column has a type and a page");
    const statistics = this.#statistics;
    assert(statistics === undefined || this.#pages.length === 1, "statistics are of one page");
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
          statistics,
        },
      },
      columnIndex: statistics === undefined ? null : encodeColumnIndex(statistics),
      offsetIndex: encodeThrift(OFFSET_INDEX, { page_locations: this.#pages }),
    };
  }

  #append(header: Buffer, uncompressedBytes: number, ...page: readonly Uint8Array[]): void {
    this.#uncompressedBytes += header.length + uncompressedBytes;
    for (const part of [header, ...page]) this.#sink.append(part);
  }
}

/** The column index of a column with one page. */
function encodeColumnIndex({ min_value, max_value, null_count }: Statistics): Buffer {
  return encodeThrift(COLUMN_INDEX, {
    null_pages: [min_value === undefined],
    min_values: [min_value ?? NO_VALUE],
    max_values: [max_value ?? NO_VALUE],
    boundary_order: "UNORDERED",
    null_counts: [null_count],
  });
}
