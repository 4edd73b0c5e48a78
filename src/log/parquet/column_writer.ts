/**
 * Writes one column chunk: a v2 data page, preceded by a dictionary page if its values are indices.
 * Returns the chunk's entries for the footer and the page indexes.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { encodeBitPacked } from "./bit_packed.ts";
import type { FileSink } from "./file_sink.ts";
import { pageCrc } from "./column_decoder.ts";
import {
  COLUMN_INDEX,
  type ColumnChunk,
  OFFSET_INDEX,
  PAGE_HEADER,
  type PageHeader,
  type SchemaElement,
  type Statistics,
} from "./parquet_format.ts";
import { snappyCompress } from "./snappy.ts";
import { encodeThrift } from "./thrift_compact.ts";

/** The content of a column chunk: one data page. */
export interface ColumnContent {
  rows: number;
  /** Plain values, or indices into the dictionary. */
  values: Uint8Array;
  /** The dictionary's values, PLAIN-encoded. */
  dictionary?: { values: Uint8Array; count: number };
  /** For an optional column: 1 for each row with a value, 0 for each without. */
  levels?: Uint8Array;
  statistics?: Statistics | undefined;
}

export interface WrittenColumn {
  /** The footer entry. Page index offsets are added later, since indexes follow all row groups. */
  chunk: ColumnChunk;
  columnIndex: Buffer | null;
  offsetIndex: Buffer;
}

const NO_VALUE = new Uint8Array();

/** Encodes indices into a dictionary of `count` values. */
export function encodeIndices(indices: ArrayLike<number>, count: number): Buffer {
  // Use at least one bit, since some readers reject runs of zero-width values.
  const bitWidth = Math.max(1, 32 - Math.clz32(count - 1));
  return Buffer.concat([Buffer.of(bitWidth), encodeBitPacked(indices, bitWidth)]);
}

export function writeColumn(
  sink: FileSink,
  { type, name }: SchemaElement,
  { rows, values, dictionary, levels, statistics }: ColumnContent,
): WrittenColumn {
  assert(type !== undefined, "a column must have a type");
  const start = sink.offset;
  const hasDictionary = dictionary !== undefined;
  let uncompressedBytes = 0;
  if (hasDictionary) {
    uncompressedBytes += writePage(sink, dictionary.values, {
      type: "DICTIONARY_PAGE",
      dictionary_page_header: { num_values: dictionary.count, encoding: "PLAIN" },
    });
  }
  const dataStart = sink.offset;
  const encodedLevels = levels === undefined ? NO_VALUE : encodeBitPacked(levels, 1);
  const header = {
    type: "DATA_PAGE_V2",
    data_page_header_v2: {
      num_values: rows,
      num_nulls: statistics?.null_count ?? 0,
      num_rows: rows,
      encoding: hasDictionary ? "RLE_DICTIONARY" : "PLAIN",
      definition_levels_byte_length: encodedLevels.length,
      repetition_levels_byte_length: 0,
      is_compressed: true,
    },
  } as const;
  uncompressedBytes += writePage(sink, values, header, encodedLevels);
  const page = {
    offset: dataStart,
    compressed_page_size: sink.offset - dataStart,
    first_row_index: 0,
  };
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
    offsetIndex: encodeThrift(OFFSET_INDEX, { page_locations: [page] }),
  };
}

/** Writes a page; returns its uncompressed size, including the header. */
function writePage(
  sink: FileSink,
  values: Uint8Array,
  header: Pick<PageHeader, "type" | "dictionary_page_header" | "data_page_header_v2">,
  levels: Uint8Array = NO_VALUE,
): number {
  const compressed = snappyCompress(values);
  const uncompressedBytes = levels.length + values.length;
  const encoded = encodeThrift(PAGE_HEADER, {
    ...header,
    uncompressed_page_size: uncompressedBytes,
    compressed_page_size: levels.length + compressed.length,
    crc: pageCrc(levels, compressed),
  });
  for (const part of [encoded, levels, compressed]) sink.append(part);
  return encoded.length + uncompressedBytes;
}

/** Encodes the column index for a column with one page. */
function encodeColumnIndex({ min_value, max_value, null_count }: Statistics): Buffer {
  return encodeThrift(COLUMN_INDEX, {
    null_pages: [min_value === undefined],
    min_values: [min_value ?? NO_VALUE],
    max_values: [max_value ?? NO_VALUE],
    boundary_order: "UNORDERED",
    null_counts: [null_count],
  });
}
