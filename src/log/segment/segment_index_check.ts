/**
 * Checks that what a reader finds events by holds for the rows: column statistics and Bloom filters
 * of row groups that leave no value out, and the stream index and key filter that the rows make.
 * Damage there changes no event but hides some.
 */
import { Buffer } from "node:buffer";
import { nameFault } from "../../event/names.ts";
import { mayContain } from "../parquet/bloom_filter.ts";
import { type ColumnValues, distinctValues, uuidAt } from "../parquet/column_values.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import { xxhash64 } from "../parquet/xxhash64.ts";
import type { RowGroup } from "./segment_footer.ts";
import { SegmentIndex } from "./segment_index.ts";
import type { Segment } from "./segment_reader.ts";
import { type ColumnName, columnNumber, type FilteredColumn } from "./segment_schema.ts";
import { countRows } from "./segment_streams.ts";
import { streamIndexBlocks } from "./stream_index.ts";

const BOUNDED_COLUMNS = ["source", "stream", "kind"] as const;

export class SegmentIndexCheck {
  readonly #segment: Segment;
  /** Columns whose values are looked up in their Bloom filters. */
  readonly #filtered: FilteredColumn[] = ["batch_id", "stream"];
  readonly #index = new SegmentIndex();

  /** @param keys whether to look up every `record_key` in its Bloom filter. */
  constructor(segment: Segment, { keys }: { keys: boolean }) {
    this.#segment = segment;
    if (keys) this.#filtered.push("record_key");
  }

  /** Takes the next batch, once. */
  addBatch(source: string, batchId: string): void {
    this.#index.addBatch(source, batchId);
  }

  /** @throws {SegmentError} */
  async checkRowGroup(number: number, columns: Record<ColumnName, ColumnValues>): Promise<void> {
    const rowGroup = this.#segment.rowGroups[number]!;
    checkIds(`${this.#segment.path}: row group ${number}`, rowGroup, columns.event_id);
    for (const name of BOUNDED_COLUMNS) checkStatistics(rowGroup, name, columns[name]);
    for (const name of this.#filtered) await this.#checkFilter(name, number, columns[name]);
    countRows(columns, rowGroup.rows, (source, stream, events, lastRow) => {
      this.#index.addEvents(source, stream, events, uuidAt(columns.event_id, lastRow));
    });
  }

  /** To be called after the last row group. @throws {SegmentError} */
  async finish(): Promise<void> {
    const segment = this.#segment;
    const { entries, keyFilter } = this.#index.finish();
    if (!(await isStreamIndex(segment, streamIndexBlocks(entries)))) {
      throw new SegmentError("the stream index is not that of its rows");
    }
    if (!(await segment.readKeyFilter()).equals(keyFilter)) {
      throw new SegmentError("the filter over its keys is not that of its rows");
    }
  }

  async #checkFilter(
    name: FilteredColumn,
    number: number,
    values: ColumnValues,
  ): Promise<void> {
    const filter = (await this.#segment.filters(name))[number];
    if (filter === null || filter === undefined) {
      throw new SegmentError(`${name}: row group ${number} has no Bloom filter`);
    }
    for (const value of distinctValues(values)) {
      if (mayContain(filter, xxhash64(value))) continue;
      throw new SegmentError(`${name}: the Bloom filter of row group ${number} leaves a value out`);
    }
  }
}

/** Whether the stream index of a segment has these blocks. */
async function isStreamIndex(segment: Segment, blocks: Iterable<Buffer>): Promise<boolean> {
  const { offset, bytes, index_bytes } = segment.metadata.stream_index;
  let at = offset;
  let lastBytes = 0;
  for (const block of blocks) {
    const end = at + block.length;
    if (end > offset + bytes) return false;
    if (!(await segment.readBytes(at, end)).equals(block)) return false;
    at = end;
    lastBytes = block.length;
  }
  return at === offset + bytes && lastBytes === index_bytes;
}

/** The statistics of the ids, by which row groups are found, are the first and the last id. */
function checkIds(what: string, { rows, firstEventId, lastEventId }: RowGroup, ids: ColumnValues) {
  const [first, last] = [uuidAt(ids, 0), uuidAt(ids, rows - 1)];
  if (first === firstEventId && last === lastEventId) return;
  throw new SegmentError(
    `${what} holds events ${first} to ${last}, but the footer says ${firstEventId} to ` +
      lastEventId,
  );
}

/** No value is outside the statistics of its column, and names are names. */
function checkStatistics(
  { columns }: RowGroup,
  name: typeof BOUNDED_COLUMNS[number],
  values: ColumnValues,
): void {
  const { bounds } = columns[columnNumber(name)]!;
  if (bounds === null) throw new SegmentError(`${name}: a row group without statistics`);
  const min = Buffer.from(bounds.min, "latin1");
  const max = Buffer.from(bounds.max, "latin1");
  for (const value of distinctValues(values)) {
    if (Buffer.compare(value, min) < 0 || Buffer.compare(value, max) > 0) {
      throw new SegmentError(`${name}: a value outside the statistics of its row group`);
    }
    const fault = name === "kind" ? null : nameFault(Buffer.from(value).toString("latin1"));
    if (fault !== null) throw new SegmentError(`${name}: a name that ${fault}`);
  }
}
