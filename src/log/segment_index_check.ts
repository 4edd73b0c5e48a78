/**
 * Checks that what a reader skips row groups by holds for their rows: bounds and Bloom filters that
 * leave no value out, and the counts of streams. Damage there changes no event but hides some.
 */
import { Buffer } from "node:buffer";
import { mayContain } from "./bloom_filter.ts";
import { type ColumnValues, distinctValues, textAt, uuidAt } from "./column_values.ts";
import type { BatchRun } from "./segment_batches.ts";
import { SegmentError } from "./segment_error.ts";
import type { RowGroup } from "./segment_footer.ts";
import type { Segment } from "./segment_reader.ts";
import { columnNumber, type FilteredColumn } from "./segment_schema.ts";
import { StreamCounter } from "./stream_counter.ts";
import { xxhash64 } from "./xxhash64.ts";

export interface IndexCheckOptions {
  /** Whether to look up every `record_key`, which costs a hash for each event. */
  keys: boolean;
}

/** The columns of a row group that the check needs. */
export interface IndexColumns {
  event_id: ColumnValues;
  source: ColumnValues;
  stream: ColumnValues;
  kind: ColumnValues;
  record_key: ColumnValues;
}

export class SegmentIndexCheck {
  readonly #segment: Segment;
  readonly #options: IndexCheckOptions;
  readonly #streams = new StreamCounter();

  constructor(segment: Segment, options: IndexCheckOptions) {
    this.#segment = segment;
    this.#options = options;
  }

  /** @throws {SegmentError} */
  async checkRowGroup(
    number: number,
    columns: IndexColumns,
    runs: readonly BatchRun[],
  ): Promise<void> {
    const rowGroup = this.#segment.rowGroups[number]!;
    for (const name of ["source", "stream", "kind"] as const) {
      checkBounds(rowGroup, name, columns[name]);
    }
    const batchIds = new Set(runs.map(({ batchId }) => batchId));
    await this.#checkFilter("batch_id", number, [...batchIds].map((id) => Buffer.from(id)));
    await this.#checkFilter("stream", number, distinctValues(columns.stream));
    if (this.#options.keys) {
      await this.#checkFilter("record_key", number, distinctValues(columns.record_key));
    }
    for (const run of runs) this.#countStreams(run, columns);
  }

  /** After the last row group. @throws {SegmentError} */
  finish(): void {
    const counted = JSON.stringify(this.#streams.list().map(Object.values));
    const claimed = this.#segment.metadata.streams
      .map(({ source, stream, events, last_event_id }) => [source, stream, events, last_event_id]);
    if (counted !== JSON.stringify(claimed)) {
      throw new SegmentError("the footer counts other events in its streams than there are");
    }
  }

  async #checkFilter(name: FilteredColumn, number: number, values: Iterable<Uint8Array>) {
    const filter = (await this.#segment.filters(name))[number];
    if (filter === null || filter === undefined) {
      throw new SegmentError(`${name}: row group ${number} has no Bloom filter`);
    }
    for (const value of values) {
      if (!mayContain(filter, xxhash64(value))) {
        throw new SegmentError(
          `${name}: the Bloom filter of row group ${number} leaves a value out`,
        );
      }
    }
  }

  #countStreams(run: BatchRun, { stream, event_id }: IndexColumns): void {
    // Within a batch, equal streams mostly stand together or alternate between a few.
    const counts = new Map<number, { events: number; lastRow: number }>();
    for (let row = run.startRow; row < run.endRow;) {
      const firstRow = row;
      const start = stream.starts[row]!;
      while (row < run.endRow && stream.starts[row] === start) row += 1;
      const events = row - firstRow + (counts.get(start)?.events ?? 0);
      counts.set(start, { events, lastRow: row - 1 });
    }
    for (const { events, lastRow } of counts.values()) {
      this.#streams.add(run.source, textAt(stream, lastRow), events, uuidAt(event_id, lastRow));
    }
  }
}

function checkBounds(
  { columns }: RowGroup,
  name: "source" | "stream" | "kind",
  values: ColumnValues,
): void {
  const { bounds } = columns[columnNumber(name)]!;
  if (bounds === null) throw new SegmentError(`${name}: a row group without bounds`);
  for (const value of distinctValues(values)) {
    if (Buffer.compare(value, bounds.min) < 0 || Buffer.compare(value, bounds.max) > 0) {
      throw new SegmentError(`${name}: a value outside the bounds of its row group`);
    }
  }
}
