/**
 * Builds a segment's indexes from its streams, sources, batches and values. The writer stores the
 * indexes; `verify` and the read-back compare them with those in the file.
 */
import { Buffer } from "node:buffer";
import type { Hash64 } from "../line/bloom_block.ts";
import { StreamCounts } from "../read/stream_counts.ts";
import {
  batchKeyHash,
  buildKeyFilter,
  FILTERED_COLUMNS,
  type FilteredColumn,
  streamKeyHash,
  valueKeyHash,
} from "./key_filter.ts";
import type { IndexRecord } from "./segment_metadata.ts";
import { encodeStreamIndex } from "./stream_index.ts";

/** The indexes in their file format. */
export interface BuiltIndexes {
  indexes: IndexRecord<Buffer>;
  /** Size of each row group's filter in `row_filters`. */
  rowFilterBytes: number[];
}

/** Returns the texts in a column of a row group, each at least once. */
export type TextsOf = (column: FilteredColumn) => Iterable<string>;

export class SegmentIndex {
  readonly #streams = new StreamCounts();
  readonly #keys: Hash64[] = [];
  /** The batches in the current row group. */
  #rowKeys: Hash64[] = [];
  readonly #rowFilters: Buffer[] = [];

  /** Called once per batch and row group. @param isStart false for the rest of a split batch. */
  addBatch(source: string, batchId: string, isStart: boolean): void {
    const key = batchKeyHash(source, batchId);
    if (isStart) this.#keys.push(key);
    this.#rowKeys.push(key);
  }

  /** Adds `events` events from one stream, up to `lastEventId`. */
  addEvents(source: string, stream: string, events: number, lastEventId: string): void {
    this.#streams.add(source, stream, events, lastEventId);
    // The entry for the whole source sorts before those for its streams; see `sourceKey()`.
    this.#streams.add(source, "", events, lastEventId);
  }

  /** Ends a row group, whose batches were added. */
  endRowGroup(textsOf: TextsOf): void {
    for (const column of FILTERED_COLUMNS) {
      for (const text of new Set(textsOf(column))) this.#rowKeys.push(valueKeyHash(column, text));
    }
    this.#rowFilters.push(buildKeyFilter(this.#rowKeys));
    this.#rowKeys = [];
  }

  /** Returns the indexes. Called once, after the last row group. */
  finish(): BuiltIndexes {
    const entries = [...this.#streams.entries()];
    for (const { key } of entries) this.#keys.push(streamKeyHash(key));
    return {
      indexes: {
        key_filter: buildKeyFilter(this.#keys),
        row_filters: Buffer.concat(this.#rowFilters),
        ...encodeStreamIndex(entries),
      },
      rowFilterBytes: this.#rowFilters.map(({ length }) => length),
    };
  }
}
