/**
 * Checks that what a reader finds events by holds for the rows: bounds and Bloom filters of row
 * groups that leave no value out, and the stream index and the filter over all keys that the rows
 * make. Damage there changes no event but hides some.
 */
import { Buffer } from "node:buffer";
import { nameFault } from "../../event/names.ts";
import { mayContain } from "../parquet/bloom_filter.ts";
import { type ColumnValues, distinctValues, uuidAt } from "../parquet/column_values.ts";
import type { BatchRun } from "./segment_batches.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import type { RowGroup } from "./segment_footer.ts";
import { countRows } from "./segment_streams.ts";
import { SegmentIndex } from "./segment_index.ts";
import type { Segment } from "./segment_reader.ts";
import { columnNumber, type FilteredColumn } from "./segment_schema.ts";
import { streamIndexBlocks } from "./stream_index.ts";
import { xxhash64 } from "../parquet/xxhash64.ts";

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
  readonly #index = new SegmentIndex();
  /** A batch may go on in the next row group. */
  #lastBatch: BatchRun | null = null;

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
    for (const run of runs) this.#takeBatch(run);
    countRows(columns, rowGroup.rows, (source, stream, events, lastRow) => {
      this.#index.addEvents(source, stream, events, uuidAt(columns.event_id, lastRow));
    });
  }

  /** After the last row group. @throws {SegmentError} */
  async finish(): Promise<void> {
    const segment = this.#segment;
    const { entries, keyFilter } = this.#index.finish();
    if (!(await this.#hasStreamIndex(streamIndexBlocks(entries)))) {
      throw new SegmentError("the stream index is not that of its rows");
    }
    if (!(await segment.readKeyFilter()).equals(keyFilter)) {
      throw new SegmentError("the filter over its keys is not that of its rows");
    }
  }

  #takeBatch(run: BatchRun): void {
    const last = this.#lastBatch;
    const goesOn = last !== null && last.batchId === run.batchId && last.source === run.source;
    if (!goesOn) this.#index.addBatch(run.source, run.batchId);
    this.#lastBatch = run;
  }

  async #hasStreamIndex(blocks: Iterable<Buffer>): Promise<boolean> {
    const { offset, bytes, index_bytes } = this.#segment.metadata.stream_index;
    let at = offset;
    let lastBytes = 0;
    for (const block of blocks) {
      const end = at + block.length;
      if (end > offset + bytes) return false;
      if (!(await this.#segment.readBytes(at, end)).equals(block)) return false;
      at = end;
      lastBytes = block.length;
    }
    return at === offset + bytes && lastBytes === index_bytes;
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
}

function checkBounds(
  { columns }: RowGroup,
  name: "source" | "stream" | "kind",
  values: ColumnValues,
): void {
  const { bounds } = columns[columnNumber(name)]!;
  if (bounds === null) throw new SegmentError(`${name}: a row group without bounds`);
  const min = Buffer.from(bounds.min, "latin1");
  const max = Buffer.from(bounds.max, "latin1");
  for (const value of distinctValues(values)) {
    if (Buffer.compare(value, min) < 0 || Buffer.compare(value, max) > 0) {
      throw new SegmentError(`${name}: a value outside the bounds of its row group`);
    }
    const fault = name === "kind" ? null : nameFault(Buffer.from(value).toString("latin1"));
    if (fault !== null) throw new SegmentError(`${name}: a name that ${fault}`);
  }
}
