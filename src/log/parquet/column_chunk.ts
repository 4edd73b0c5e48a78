/**
 * Writes the pages of one column of a row group, compressed, and describes them as the footer will
 * (parquet-format, README.md and parquet.thrift): data pages of version 2, after a dictionary page
 * where values are codes.
 */
import type { Encoding, OffsetIndex, SchemaElement, Statistics } from "hyparquet";
import { ByteWriter } from "hyparquet-writer";
import { writePageHeader } from "hyparquet-writer/src/datapage.js";
import { writeRleBitPackedHybrid } from "hyparquet-writer/src/encoding.js";
import type { PageColumnIndex, PageIndexes } from "hyparquet-writer/src/types.js";
import { assert } from "../../assert.ts";
import type { SegmentSink } from "../segment/segment_sink.ts";
import { snappyCompress } from "./snappy.ts";

/** Bounds of a column and, where it has several pages, of each. */
export interface ColumnBounds {
  column: Statistics;
  pages?: PageColumnIndex;
}

/** Rows of a page. */
export interface PageRows {
  rows: number;
  /** For an optional column: for each row 1 where it has a value, 0 where it has none. */
  levels?: Uint8Array;
}

const NO_LEVELS = new Uint8Array();

export class ColumnChunkWriter {
  readonly #sink: SegmentSink;
  readonly #element: SchemaElement;
  readonly #start: number;
  #dataStart: number | null = null;
  #encoding: Encoding = "PLAIN";
  #uncompressedBytes = 0;
  #rows = 0;
  readonly #pages: OffsetIndex["page_locations"] = [];

  constructor(sink: SegmentSink, element: SchemaElement) {
    this.#sink = sink;
    this.#element = element;
    this.#start = sink.offset;
  }

  /** The values that the codes of the pages to come stand for, plain. */
  writeDictionary(values: Uint8Array, count: number): void {
    assert(this.#dataStart === null, "a dictionary comes before all data");
    this.#encoding = "RLE_DICTIONARY";
    const compressed = snappyCompress(values);
    const start = this.#sink.offset;
    writePageHeader(this.#sink, {
      type: "DICTIONARY_PAGE",
      uncompressed_page_size: values.length,
      compressed_page_size: compressed.length,
      dictionary_page_header: { num_values: count, encoding: "PLAIN" },
    });
    this.#uncompressedBytes += this.#sink.offset - start + values.length;
    this.#sink.appendBytes(compressed);
  }

  /** A page of codes into a dictionary of `count` values. */
  writeCodes(codes: Int32Array, count: number): void {
    const bitWidth = count === 1 ? 0 : 32 - Math.clz32(count - 1);
    const bytes = new ByteWriter();
    bytes.appendUint8(bitWidth);
    writeRleBitPackedHybrid(bytes, codes, bitWidth);
    this.writePage(bytes.getBytes(), { rows: codes.length });
  }

  /** A page of plain values, or of codes. */
  writePage(values: Uint8Array, { rows, levels }: PageRows): void {
    const start = this.#sink.offset;
    this.#dataStart ??= start;
    const encodedLevels = levels === undefined ? NO_LEVELS : encodeLevels(levels);
    const compressed = snappyCompress(values);
    writePageHeader(this.#sink, {
      type: "DATA_PAGE_V2",
      uncompressed_page_size: encodedLevels.length + values.length,
      compressed_page_size: encodedLevels.length + compressed.length,
      data_page_header_v2: {
        num_values: rows,
        num_nulls: levels === undefined ? 0 : rows - levels.reduce((sum, level) => sum + level, 0),
        num_rows: rows,
        encoding: this.#encoding,
        definition_levels_byte_length: encodedLevels.length,
        repetition_levels_byte_length: 0,
        is_compressed: true,
      },
    });
    this.#uncompressedBytes += this.#sink.offset - start + encodedLevels.length + values.length;
    this.#sink.appendBytes(encodedLevels);
    this.#sink.appendBytes(compressed);
    this.#pages.push({
      offset: BigInt(start),
      compressed_page_size: this.#sink.offset - start,
      first_row_index: BigInt(this.#rows),
    });
    this.#rows += rows;
  }

  /** What the footer says of the column, and the indexes to be written before it. */
  finish(bounds: ColumnBounds | null, bloomFilter: Uint32Array | null): PageIndexes {
    const { type, name } = this.#element;
    assert(type !== undefined && this.#dataStart !== null, "a column has a type and a page");
    const isCoded = this.#encoding === "RLE_DICTIONARY";
    const isPaged = this.#pages.length > 1;
    return {
      chunk: {
        file_offset: BigInt(this.#start),
        meta_data: {
          type,
          encodings: isCoded ? ["PLAIN", "RLE_DICTIONARY"] : ["PLAIN"],
          path_in_schema: [name],
          codec: "SNAPPY",
          num_values: BigInt(this.#rows),
          total_uncompressed_size: BigInt(this.#uncompressedBytes),
          total_compressed_size: BigInt(this.#sink.offset - this.#start),
          data_page_offset: BigInt(this.#dataStart),
          ...(isCoded && { dictionary_page_offset: BigInt(this.#start) }),
          ...(bounds !== null && { statistics: bounds.column }),
        },
      },
      ...(isPaged && { offsetIndex: { page_locations: this.#pages } }),
      ...(isPaged && bounds?.pages !== undefined && { columnIndex: bounds.pages }),
      ...(bloomFilter !== null && { bloomFilter }),
    };
  }
}

function encodeLevels(levels: Uint8Array): Uint8Array {
  const bytes = new ByteWriter();
  writeRleBitPackedHybrid(bytes, levels, 1);
  return bytes.getBytes();
}
