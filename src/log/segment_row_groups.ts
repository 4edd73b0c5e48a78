/**
 * Writes row groups through the Parquet writer, and gives each what it can have for less than the
 * writer would spend: Bloom filters without hashing a repeated value again, bounds of ids without
 * comparing what is known to be sorted.
 */
import { ParquetWriter } from "hyparquet-writer";
import type { PageLocation } from "hyparquet/src/types.js";
import type { PageIndexes } from "hyparquet-writer/src/types.js";
import { assert } from "../assert.ts";
import { ROW_GROUP_EVENTS_MAX, SEGMENT_PAGE_BYTES } from "../limits.ts";
import { VERSION } from "../version.ts";
import { buildBloomFilter } from "./bloom_filter.ts";
import { METADATA_KEY } from "./segment_metadata.ts";
import type { RowGroupRows } from "./segment_rows.ts";
import {
  BLOOM_FILTERS,
  BOUND_BYTES_MAX,
  COLUMN_NAMES,
  columnNumber,
  FILTERED_COLUMNS,
  SEGMENT_SCHEMA,
} from "./segment_schema.ts";
import type { SegmentSink } from "./segment_sink.ts";
import { snappyCompress } from "./snappy.ts";

const CREATED_BY = `service version ${VERSION}`;

export class RowGroupWriter {
  readonly #parquet: ParquetWriter;

  constructor(sink: SegmentSink) {
    this.#parquet = new ParquetWriter({
      writer: sink,
      schema: SEGMENT_SCHEMA,
      codec: "SNAPPY",
      compressors: { SNAPPY: snappyCompress },
      statisticsTruncateLength: BOUND_BYTES_MAX,
      createdBy: CREATED_BY,
    });
  }

  /** Writes the rows as the next row group; they may change when this is done. */
  async write(rows: RowGroupRows): Promise<void> {
    await this.#parquet.write({
      columnData: rows.columnData(),
      rowGroupSize: ROW_GROUP_EVENTS_MAX,
      pageSize: SEGMENT_PAGE_BYTES,
    });
    const columns = this.#parquet.pendingIndexes.slice(-COLUMN_NAMES.length);
    for (const name of FILTERED_COLUMNS) {
      const values = rows.filteredValues(name);
      columns[columnNumber(name)]!.bloomFilter = buildBloomFilter(values, BLOOM_FILTERS[name]);
    }
    addSortedBounds(columns[columnNumber("event_id")]!, rows.eventIds);
  }

  /** Ends the file. @param metadata the text under METADATA_KEY. */
  async finish(metadata: string): Promise<void> {
    this.#parquet.kvMetadata = [{ key: METADATA_KEY, value: metadata }];
    await this.#parquet.finish();
  }
}

/** Bounds of a column whose values increase: of each page, the first and the last one. */
function addSortedBounds(column: PageIndexes, values: readonly Uint8Array[]): void {
  const { meta_data: meta } = column.chunk;
  assert(meta !== undefined, "the writer describes each column");
  const copyOf = (row: number) => Uint8Array.from(values[row]!);
  meta.statistics = {
    min_value: copyOf(0),
    max_value: copyOf(values.length - 1),
    null_count: 0n,
  };
  const pages: PageLocation[] | undefined = column.offsetIndex?.page_locations;
  if (pages === undefined) return;
  const firstRows = pages.map((page) => Number(page.first_row_index));
  const lastRows = [...firstRows.slice(1), values.length].map((row) => row - 1);
  column.columnIndex = {
    null_pages: firstRows.map(() => false),
    min_values: firstRows.map(copyOf),
    max_values: lastRows.map(copyOf),
    boundary_order: "ASCENDING",
    null_counts: firstRows.map(() => 0n),
  };
}
