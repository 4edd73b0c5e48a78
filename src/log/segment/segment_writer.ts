/**
 * Writes a segment: one Parquet file with commits in log order. It writes row group by row group,
 * so memory is bounded by one row group. It fails if events do not match the order, counts or chain
 * heads in their commits, so sealing never changes history.
 */
import { crc32 } from "node:zlib";
import { type ColumnSource, ParquetWriter } from "hyparquet-writer";
import { assert } from "../../assert.ts";
import { canonicalize } from "../../event/json/canonical_json.ts";
import {
  ROW_GROUP_EVENTS_MAX,
  SEGMENT_BYTES_SOFT_MAX,
  SEGMENT_EVENTS_SOFT_MAX,
} from "../../limits.ts";
import { VERSION } from "../../version.ts";
import type { BatchEntry } from "../wal/commit_frame.ts";
import { HistoryCheck } from "../wal/history_check.ts";
import type { WholeCommit } from "../wal/commit_reader.ts";
import { FileWriter } from "./file_writer.ts";
import { IndexBuilder } from "../index/index_writer.ts";
import {
  type EventFacts,
  METADATA_KEY,
  type SegmentFacts,
  type SegmentMetadata,
} from "./segment_metadata.ts";
import { RowGroupRows } from "./segment_rows.ts";
import { COLUMN_NAMES, type ColumnName, SEGMENT_SCHEMA } from "./segment_schema.ts";
import type { Storage, StorageFile } from "../storage/storage.ts";

/**
 * A row group ends before an event that would make its lines exceed this size. A larger event gets
 * its own row group, so a row group's lines never exceed COMMIT_BODY_BYTES_MAX.
 */
export const ROW_GROUP_BYTES_SOFT_MAX: number = 8 * 1024 * 1024;

export type CommitLines = Pick<WholeCommit, "commit" | "lines">;

export interface SegmentBounds {
  /** A segment is full once it has this many events. */
  events: number;
  /** A segment is also full once its lines have this many bytes. */
  bytes: number;
}

export interface WriteSegmentOptions {
  /** Chain head before the first event. */
  previousHead: string;
  bounds?: SegmentBounds | undefined;
  /** Called after each row group; may block. */
  throttle?: (() => void) | undefined;
}

const BOUNDS: SegmentBounds = { events: SEGMENT_EVENTS_SOFT_MAX, bytes: SEGMENT_BYTES_SOFT_MAX };

export interface WrittenSegment {
  facts: SegmentFacts;
  /** CRC-32 of all lines, for the read-back. */
  linesCrc: number;
}

/**
 * Writes the next commits from the log to a new file at `path` and syncs it. A segment ends after a
 * complete commit; the iterator keeps the rest for the next segment.
 *
 * @returns null, without creating a file, if the iterator is empty.
 * @throws {CorruptLogError} if the lines do not match their batches; the file is unusable.
 */
export async function writeSegment(
  storage: Storage,
  path: string,
  commits: AsyncIterator<CommitLines>,
  { previousHead, bounds = BOUNDS, throttle = () => {} }: WriteSegmentOptions,
): Promise<WrittenSegment | null> {
  let next = await commits.next();
  if (next.done === true) return null;
  const file = await storage.open(path, "create");
  try {
    const segment = new SegmentWriter(file, previousHead, throttle);
    while (next.done !== true) {
      await segment.add(next.value);
      if (segment.isFull(bounds)) break;
      next = await commits.next();
    }
    const written = await segment.finish();
    await file.sync();
    return written;
  } finally {
    await file.close();
  }
}

class SegmentWriter {
  readonly #file: FileWriter;
  readonly #rowGroups: RowGroupWriter;
  readonly #throttle: () => void;
  readonly #previousHead: string;
  readonly #history: HistoryCheck;
  readonly #index = new IndexBuilder();
  #rows = new RowGroupRows();
  #rowsBytes = 0;
  #batches = 0;
  #linesCrc = 0;
  #linesBytes = 0;

  constructor(file: StorageFile, previousHead: string, throttle: () => void) {
    this.#file = new FileWriter(file);
    this.#rowGroups = new RowGroupWriter(this.#file);
    this.#throttle = throttle;
    this.#previousHead = previousHead;
    this.#history = new HistoryCheck({ chain: false, previousHead });
    this.#history.enterFile("sealed events", "pending_invalid");
  }

  isFull(bounds: SegmentBounds): boolean {
    return this.#history.eventsChecked >= bounds.events || this.#linesBytes >= bounds.bytes;
  }

  async add({ commit, lines }: CommitLines): Promise<void> {
    const history = this.#history;
    let batch: BatchEntry | null = null;
    let start = 0;
    for (const [entry, end] of history.events(commit, lines)) {
      if (this.#rowGroupEnds(end - start)) await this.#writeRowGroup();
      if (entry !== batch) this.#index.addBatch(entry.source, entry.batch_id);
      batch = entry;
      this.#rows.add(history.event, entry);
      this.#index.addEvent(entry.source, history.event, history.lastEventId!);
      this.#rowsBytes += end - start;
      start = end;
    }
    this.#batches += commit.batches.length;
    this.#linesCrc = crc32(lines, this.#linesCrc);
    this.#linesBytes += lines.length;
  }

  async finish(): Promise<WrittenSegment> {
    const { eventsChecked: events, firstEventId, lastEventId, head } = this.#history;
    const hasEvents = firstEventId !== null && lastEventId !== null && head !== null;
    assert(hasEvents, "a segment must have events");
    await this.#writeRowGroup();
    const metadata = {
      events,
      batches: this.#batches,
      first_event_id: firstEventId,
      last_event_id: lastEventId,
      previous_head: this.#previousHead,
      head,
    };
    await this.#rowGroups.finish(metadata, await this.#index.finish());
    return {
      facts: { ...metadata, sha256: this.#file.digest(), bytes: this.#file.sizeBytes },
      linesCrc: this.#linesCrc,
    };
  }

  #rowGroupEnds(lineBytes: number): boolean {
    const { rows } = this.#rows;
    return rows === ROW_GROUP_EVENTS_MAX ||
      rows > 0 && this.#rowsBytes + lineBytes > ROW_GROUP_BYTES_SOFT_MAX;
  }

  async #writeRowGroup(): Promise<void> {
    this.#index.endRowGroup();
    await this.#rowGroups.write(this.#rows);
    this.#rows = new RowGroupRows();
    this.#rowsBytes = 0;
    this.#throttle();
  }
}

/** Writes row groups, then the segment's index and its footer, through `hyparquet-writer`. */
export class RowGroupWriter {
  readonly #file: FileWriter;
  readonly #parquet: ParquetWriter;
  /** Per row group, the CRC-32 of each column chunk: 8 hex digits, in schema order. */
  readonly #chunkCrcs: string[] = [];

  constructor(file: FileWriter) {
    this.#file = file;
    this.#parquet = new ParquetWriter({
      writer: file,
      schema: [...SEGMENT_SCHEMA],
      createdBy: `service version ${VERSION}`,
    });
  }

  /** Writes the next row group. */
  async write(rows: RowGroupRows): Promise<void> {
    const start = this.#file.offset;
    await this.#parquet.write({
      columnData: COLUMN_NAMES.map((name) => columnOf(name, rows)),
      rowGroupSize: rows.rows,
      // One page per column chunk.
      pageSize: 0,
    });
    const bytes = this.#file.getBytes().subarray(start - this.#file.offset);
    const crcs = this.#parquet.row_groups.at(-1)!.columns.map(({ file_offset, meta_data }) => {
      const at = Number(file_offset) - start;
      const crc = crc32(bytes.subarray(at, at + Number(meta_data!.total_compressed_size)));
      return crc.toString(16).padStart(8, "0");
    });
    this.#chunkCrcs.push(crcs.join(""));
    await this.#file.writeOut();
  }

  /** Writes the index and the footer. @param index the segment's own index, over all rows. */
  async finish(facts: EventFacts, index: Uint8Array): Promise<void> {
    const metadata: SegmentMetadata = {
      ...facts,
      chunk_crcs: this.#chunkCrcs,
      index_start: this.#file.offset,
      index_bytes: index.length,
    };
    this.#file.appendBytes(index);
    this.#parquet.kvMetadata = [{ key: METADATA_KEY, value: canonicalize(metadata) }];
    await this.#parquet.finish();
  }
}

/**
 * Other engines prune row groups by id and time, and find a record by its key. Our own lookups use
 * the segment's index.
 */
function columnOf(name: ColumnName, rows: RowGroupRows): ColumnSource {
  return {
    name,
    data: rows.valuesOf(name),
    encoding: rows.hasDictionary(name) ? "RLE_DICTIONARY" : "PLAIN",
    statistics: name === "event_id" || name === "observed_at",
    columnIndex: name === "event_id",
    bloomFilter: name === "record_key",
  };
}
