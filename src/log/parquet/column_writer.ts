/**
 * Writes one column chunk: compressed data pages of version 2, after a dictionary page where values
 * are indices. Returns its entries of the footer and the page indexes.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import type { FileSink } from "./file_sink.ts";
import { pageCrc } from "./column_decoder.ts";
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

/** A data page: plain values, or those of `encodeIndices()`. */
export interface ColumnPage {
  rows: number;
  values: Uint8Array;
}

/** The content of a column chunk. One that has levels or statistics has one page. */
export interface ColumnContent {
  pages: readonly ColumnPage[];
  /** The plain values that indices refer to. */
  dictionary?: { values: Uint8Array; count: number };
  /** For an optional column: for each row 1 where it has a value, 0 where it has none. */
  levels?: Uint8Array;
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

/** Encodes indices into a dictionary of `count` values. */
export function encodeIndices(indices: Int32Array, count: number): Buffer {
  const bitWidth = 32 - Math.clz32(count - 1);
  return Buffer.concat([Buffer.of(bitWidth), encodeRleHybrid(indices, bitWidth)]);
}

export function writeColumn(
  sink: FileSink,
  { type, name }: SchemaElement,
  { pages, dictionary, levels, statistics }: ColumnContent,
): WrittenColumn {
  const isOnePage = pages.length === 1 || levels === undefined && statistics === undefined;
  assert(type !== undefined && pages.length > 0 && isOnePage, "a column has a type and its pages");
  const start = sink.offset;
  const hasDictionary = dictionary !== undefined;
  let uncompressedBytes = hasDictionary ? writeDictionary(sink, dictionary) : 0;
  const dataStart = sink.offset;
  const page_locations: OffsetIndex["page_locations"][number][] = [];
  let rows = 0;
  for (const page of pages) {
    const offset = sink.offset;
    uncompressedBytes += writePage(sink, page, hasDictionary, levels);
    page_locations.push({
      offset,
      compressed_page_size: sink.offset - offset,
      first_row_index: rows,
    });
    rows += page.rows;
  }
  return {
    chunk: {
      file_offset: start,
      meta_data: {
        type,
        encodings: hasDictionary ? ["PLAIN", "RLE_DICTIONARY"] : ["PLAIN"],
        path_in_schema: [name],
        codec: "SNAPPY",
        num_values: rows,
        total_uncompressed_size: uncompressedBytes,
        total_compressed_size: sink.offset - start,
        data_page_offset: dataStart,
        dictionary_page_offset: hasDictionary ? start : undefined,
        statistics,
      },
    },
    columnIndex: statistics === undefined ? null : encodeColumnIndex(statistics),
    offsetIndex: encodeThrift(OFFSET_INDEX, { page_locations }),
  };
}

/** Writes a dictionary page; returns its uncompressed size with its header. */
function writeDictionary(
  sink: FileSink,
  { values, count }: { values: Uint8Array; count: number },
): number {
  const compressed = snappyCompress(values);
  const header = encodeThrift(PAGE_HEADER, {
    type: "DICTIONARY_PAGE",
    uncompressed_page_size: values.length,
    compressed_page_size: compressed.length,
    crc: pageCrc(compressed),
    dictionary_page_header: { num_values: count, encoding: "PLAIN" },
  });
  sink.append(header);
  sink.append(compressed);
  return header.length + values.length;
}

/** Writes a data page; returns its uncompressed size with its header. */
function writePage(
  sink: FileSink,
  { rows, values }: ColumnPage,
  hasDictionary: boolean,
  levels: Uint8Array | undefined,
): number {
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
      encoding: hasDictionary ? "RLE_DICTIONARY" : "PLAIN",
      definition_levels_byte_length: encodedLevels.length,
      repetition_levels_byte_length: 0,
      is_compressed: true,
    },
  });
  for (const part of [header, encodedLevels, compressed]) sink.append(part);
  return header.length + uncompressedBytes;
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
