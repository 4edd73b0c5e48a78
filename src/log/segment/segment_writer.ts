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
import type { Storage } from "../storage/storage.ts";

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
 * @throws {CorruptLogError} if the lines do not match their batches; the file is unusable.
 */
export async function writeSegment(
  storage: Storage,
  path: string,
  commits: AsyncIterator<CommitLines>,
  options: WriteSegmentOptions,
): Promise<WrittenSegment> {
  const file = await storage.open(path, "create");
  try {
    const written = await writeCommits(new FileWriter(file), commits, options);
    await file.sync();
    return written;
  } finally {
    await file.close();
  }
}

async function writeCommits(
  file: FileWriter,
  commits: AsyncIterator<CommitLines>,
  { previousHead, bounds = BOUNDS, throttle = () => {} }: WriteSegmentOptions,
): Promise<WrittenSegment> {
  const history = new HistoryCheck({ chain: false, previousHead });
  history.enterFile("sealed events", "pending_invalid");
  const rowGroups = new RowGroupWriter(file);
  const index = new IndexBuilder();
  let rows = new RowGroupRows();
  let rowsBytes = 0;
  let batches = 0;
  let linesCrc = 0;
  let linesBytes = 0;
  const endRowGroup = async () => {
    index.endRowGroup();
    await rowGroups.write(rows);
    rows = new RowGroupRows();
    rowsBytes = 0;
    throttle();
  };
  for (let next = await commits.next(); next.done !== true; next = await commits.next()) {
    const { commit, lines } = next.value;
    let batch: BatchEntry | null = null;
    let start = 0;
    for (const [entry, end] of history.events(commit, lines)) {
      const lineBytes = end - start;
      const isFull = rows.rows === ROW_GROUP_EVENTS_MAX ||
        rows.rows > 0 && rowsBytes + lineBytes > ROW_GROUP_BYTES_SOFT_MAX;
      if (isFull) await endRowGroup();
      if (entry !== batch) index.addBatch(entry.source, entry.batch_id);
      batch = entry;
      const isAlone = lineBytes > ROW_GROUP_BYTES_SOFT_MAX;
      rows.add(history.event, entry, isAlone);
      index.addEvent(entry.source, history.event, history.lastEventId!);
      if (isAlone) await endRowGroup();
      else rowsBytes += lineBytes;
      start = end;
    }
    batches += commit.batches.length;
    linesCrc = crc32(lines, linesCrc);
    linesBytes += lines.length;
    if (history.eventsChecked >= bounds.events || linesBytes >= bounds.bytes) break;
  }
  const { eventsChecked: events, firstEventId, lastEventId, head } = history;
  const hasEvents = firstEventId !== null && lastEventId !== null && head !== null;
  assert(hasEvents, "a segment must have events");
  if (rows.rows > 0) await endRowGroup();
  const metadata = {
    events,
    batches,
    first_event_id: firstEventId,
    last_event_id: lastEventId,
    previous_head: previousHead,
    head,
  };
  await rowGroups.finish(metadata, await index.finish());
  return { facts: { ...metadata, sha256: file.digest(), bytes: file.sizeBytes }, linesCrc };
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
