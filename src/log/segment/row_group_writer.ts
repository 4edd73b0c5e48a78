/**
 * Writes row groups, then the page indexes, Bloom filters and footer that describe them. Statistics
 * need no pass over the rows, since dictionaries hold each value once and ids increase.
 */
import type { Buffer } from "node:buffer";
import { VERSION } from "../../version.ts";
import { UUID_BYTES } from "../line/line_bytes.ts";
import { BLOOM_CRC_BYTES, buildBloomFilter, encodeBloomFilter } from "../parquet/bloom_filter.ts";
import { compareBytes, compareIntegers, statisticsOf } from "../parquet/column_statistics.ts";
import {
  type ColumnContent,
  encodeIndices,
  writeColumn,
  type WrittenColumn,
} from "../parquet/column_writer.ts";
import { Dictionary } from "../parquet/dictionary.ts";
import type { FileSink } from "../parquet/file_sink.ts";
import { encodeFooter, MAGIC } from "../parquet/footer.ts";
import type { ColumnChunk, ParquetRowGroup, Statistics } from "../parquet/parquet_format.ts";
import { PlainValues, plainValues } from "../parquet/plain_values.ts";
import { canonicalize } from "../../event/json/canonical_json.ts";
import { type EventFacts, METADATA_KEY, type SegmentMetadata } from "./segment_metadata.ts";
import type { RowGroupRows } from "./segment_rows.ts";
import {
  BLOOM_FILTERS,
  COLUMN_NAMES,
  columnElement,
  type ColumnName,
  SEGMENT_SCHEMA,
} from "./segment_schema.ts";
import { sumOf } from "../../sum.ts";

const CREATED_BY = `service version ${VERSION}`;

/** The Parquet format version with v2 data pages. */
const FORMAT_VERSION = 2;

export class RowGroupWriter {
  readonly #sink: FileSink;
  readonly #rowGroups: ParquetRowGroup[] = [];
  readonly #columns: (WrittenColumn & { bloomFilter: Buffer | null })[] = [];
  readonly #dictionaryValues: PlainValues = new PlainValues();
  #rows = 0;

  constructor(sink: FileSink) {
    this.#sink = sink;
    sink.append(MAGIC);
  }

  /** Writes the next row group. The caller may reuse `rows` afterwards. */
  async write(rows: RowGroupRows): Promise<void> {
    const start = this.#sink.offset;
    const chunks = COLUMN_NAMES.map((name) => this.#writeColumn(name, rows));
    this.#rowGroups.push({
      columns: chunks,
      total_byte_size: sumOf(chunks, (chunk) => chunk.meta_data.total_uncompressed_size),
      num_rows: rows.rows,
      total_compressed_size: this.#sink.offset - start,
    });
    this.#rows += rows.rows;
    await this.#sink.flush();
  }

  /** Writes the indexes and the footer. @param index the segment's own index, over all rows. */
  async finish(facts: EventFacts, index: Buffer): Promise<void> {
    this.#writeIndexes();
    this.#sink.append(index);
    const metadata: SegmentMetadata = { ...facts, index_bytes: index.length };
    this.#sink.append(encodeFooter({
      version: FORMAT_VERSION,
      schema: SEGMENT_SCHEMA,
      num_rows: this.#rows,
      row_groups: this.#rowGroups,
      key_value_metadata: [{ key: METADATA_KEY, value: canonicalize(metadata) }],
      created_by: CREATED_BY,
      column_orders: COLUMN_NAMES.map(() => ({ TYPE_ORDER: {} })),
    }));
    await this.#sink.flush();
  }

  #writeColumn(name: ColumnName, rows: RowGroupRows): ColumnChunk {
    const written = writeColumn(this.#sink, columnElement(name), this.#contentOf(name, rows));
    this.#columns.push({ ...written, bloomFilter: bloomFilterOf(name, rows) });
    return written.chunk;
  }

  #contentOf(name: ColumnName, rows: RowGroupRows): ColumnContent {
    const column = rows[name];
    if (column instanceof Dictionary) return this.#dictionaryContent(name, column);
    if (name === "occurred_at") {
      const values = [...plainValues(column.values)];
      return {
        rows: rows.rows,
        values: column.values,
        levels: rows.occurredAtLevels,
        statistics: statisticsOf(values, compareBytes, rows.rows - values.length),
      };
    }
    const statistics = name === "event_id" ? idStatistics(rows) : undefined;
    return { rows: rows.rows, values: column.values, statistics };
  }

  #dictionaryContent(name: ColumnName, { values, indices }: Dictionary): ColumnContent {
    const isFixed = columnElement(name).type !== "BYTE_ARRAY";
    const plain = this.#dictionaryValues;
    plain.clear();
    for (const value of values) {
      if (isFixed) plain.append(value);
      else plain.add(value);
    }
    const count = values.length;
    const hasStatistics = name !== "batch_id" && name !== "batch_digest";
    const compare = name === "observed_at" ? compareIntegers : compareBytes;
    return {
      rows: indices.length,
      values: encodeIndices(indices, count),
      dictionary: { values: plain.values, count },
      statistics: hasStatistics ? statisticsOf(values, compare) : undefined,
    };
  }

  /** Writes indexes grouped by kind, each kind ordered by row group and column. */
  #writeIndexes(): void {
    for (const { chunk, columnIndex } of this.#columns) {
      if (columnIndex === null) continue;
      chunk.column_index_offset = this.#sink.append(columnIndex);
      chunk.column_index_length = columnIndex.length;
    }
    for (const { chunk, offsetIndex } of this.#columns) {
      chunk.offset_index_offset = this.#sink.append(offsetIndex);
      chunk.offset_index_length = offsetIndex.length;
    }
    for (const { chunk: { meta_data }, bloomFilter } of this.#columns) {
      if (bloomFilter === null) continue;
      meta_data.bloom_filter_offset = this.#sink.append(bloomFilter);
      meta_data.bloom_filter_length = bloomFilter.length - BLOOM_CRC_BYTES;
    }
  }
}

/** Ids increase, so the first is the minimum and the last is the maximum. */
function idStatistics({ event_id: { values } }: RowGroupRows): Statistics {
  return statisticsOf([values.subarray(0, UUID_BYTES), values.subarray(-UUID_BYTES)], compareBytes);
}

function bloomFilterOf(name: ColumnName, rows: RowGroupRows): Buffer | null {
  if (name !== "record_key") return null;
  return encodeBloomFilter(buildBloomFilter(plainValues(rows[name].values), BLOOM_FILTERS[name]));
}
