/**
 * Reads the footer of a segment: its metadata, and the place and statistics of each column chunk.
 * Accepts only what the writer writes: this schema, row groups that fill the file from its start,
 * sizes within their limits.
 */
import { Buffer } from "node:buffer";
import { isDeepStrictEqual } from "node:util";
import { assert } from "../../assert.ts";
import { isEventId } from "../../event/event_id.ts";
import { COMMIT_BODY_BYTES_MAX, KEY_FILTER_BYTES_MAX, ROW_GROUP_EVENTS_MAX } from "../../limits.ts";
import { BLOOM_CRC_BYTES } from "../parquet/bloom_filter.ts";
import { type CheckedFooter, decodeFooter, MAGIC, readCheckedFooter } from "../parquet/footer.ts";
import {
  type ColumnChunk,
  FILE_KEY_VALUES,
  FILE_META_DATA,
  type FileMetaData,
  type ParquetRowGroup,
} from "../parquet/parquet_format.ts";
import type { FileRange } from "../parquet/read_range.ts";
import { KEY_PAGE_BYTES } from "./key_filter.ts";
import { UUID_BYTES, uuidText } from "../line/line_bytes.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import { decodeMetadata, METADATA_KEY, type SegmentMetadata } from "./segment_metadata.ts";
import {
  COLUMN_NAMES,
  type ColumnName,
  columnNumber,
  type FilteredColumn,
  SEGMENT_SCHEMA,
} from "./segment_schema.ts";
import { SNAPPY_GROWTH_MAX } from "../parquet/snappy.ts";
import type { FileReader } from "../storage/storage.ts";

/** Longest Bloom filter of a row group that a reader accepts. */
const BLOOM_FILTER_BYTES_MAX = 64 * 1024;

/** Columns whose statistics prune row groups. */
export const BOUNDED_COLUMNS = ["source", "stream", "kind"] as const;

/** The pages of one column of one row group. */
interface ColumnPlace extends FileRange {
  uncompressedBytes: number;
}

/**
 * Minimum and maximum of a column as latin1, a character for each byte, which sorts as the bytes do
 * and takes little memory.
 */
export interface ColumnBounds {
  min: string;
  max: string;
}

export interface RowGroup {
  /** Number of events. */
  rows: number;
  firstEventId: string;
  lastEventId: string;
  /** In the order of the schema. */
  columns: ColumnPlace[];
  bounds: Record<typeof BOUNDED_COLUMNS[number], ColumnBounds>;
  /** Bloom filters in the file, each with its CRC-32. */
  filters: Record<FilteredColumn, FileRange>;
}

/** Reads the footer of a segment. @throws {SegmentError} when the file is no segment. */
export async function readFooter(file: FileReader, sizeBytes: number): Promise<SegmentFooter> {
  const parquet = await readCheckedFooter(file, sizeBytes);
  const { key_value_metadata: [first] } = decodeFooter(FILE_KEY_VALUES, parquet);
  if (first?.key !== METADATA_KEY) throw new SegmentError(`no ${METADATA_KEY}`);
  return new SegmentFooter(decodeMetadata(first.value), parquet);
}

export class SegmentFooter {
  readonly metadata: SegmentMetadata;
  readonly keyFilter: FileRange;
  readonly streamBlocks: FileRange;
  readonly streamIndex: FileRange;
  /** Null once its row groups are decoded: it takes 30 KiB, times a hundred segments. */
  #parquet: CheckedFooter | null;
  #rowGroups: readonly RowGroup[] | null = null;

  /** @throws {SegmentError} */
  constructor(metadata: SegmentMetadata, parquet: CheckedFooter) {
    this.metadata = metadata;
    this.#parquet = parquet;
    const { key_filter_bytes, stream_blocks_bytes, stream_index_bytes } = metadata;
    const indexStart = parquet.start - stream_index_bytes;
    const blocksStart = indexStart - stream_blocks_bytes;
    const filterStart = blocksStart - key_filter_bytes;
    const isFilter = key_filter_bytes % KEY_PAGE_BYTES === 0 &&
      key_filter_bytes <= KEY_FILTER_BYTES_MAX;
    if (!isFilter || filterStart < MAGIC.length) {
      throw new SegmentError(`a key filter of ${key_filter_bytes} bytes from byte ${filterStart}`);
    }
    this.keyFilter = { start: filterStart, end: blocksStart };
    this.streamBlocks = { start: blocksStart, end: indexStart };
    this.streamIndex = { start: indexStart, end: parquet.start };
  }

  /** From oldest to newest. @throws {SegmentError} */
  get rowGroups(): readonly RowGroup[] {
    return this.#rowGroups ??= this.#decodeRowGroups();
  }

  #decodeRowGroups(): RowGroup[] {
    const parquet = this.#parquet;
    assert(parquet !== null, "the row groups of a footer are decoded once");
    const file = decodeFooter(FILE_META_DATA, parquet);
    if (!isDeepStrictEqual(file.schema, SEGMENT_SCHEMA)) {
      throw new SegmentError("the columns are not those of a segment");
    }
    const rowGroups = checkRowGroups(file, parquet.start);
    checkCounts(this.metadata, rowGroups, file.num_rows);
    this.#parquet = null;
    return rowGroups;
  }
}

function checkRowGroups({ row_groups }: FileMetaData, footerStart: number): RowGroup[] {
  const rowGroups: RowGroup[] = [];
  let at = MAGIC.length;
  for (const next of row_groups) {
    const rowGroup = checkRowGroup(next, at, footerStart);
    const last = rowGroups.at(-1);
    if (last !== undefined && rowGroup.firstEventId <= last.lastEventId) {
      throw new SegmentError(
        `a row group that starts with event ${rowGroup.firstEventId} follows one that ends with ` +
          `event ${last.lastEventId}`,
        { fault: "order_invalid" },
      );
    }
    rowGroups.push(rowGroup);
    at = rowGroup.columns.at(-1)!.end;
  }
  return rowGroups;
}

function checkRowGroup(
  { num_rows: rows, columns: chunks }: ParquetRowGroup,
  start: number,
  footerStart: number,
): RowGroup {
  if (rows === 0 || rows > ROW_GROUP_EVENTS_MAX) {
    throw new SegmentError(`a row group of ${rows} rows, outside 1 to ${ROW_GROUP_EVENTS_MAX}`);
  }
  if (chunks.length !== COLUMN_NAMES.length) {
    throw new SegmentError(`a row group of ${chunks.length} columns`);
  }
  const columns: ColumnPlace[] = [];
  chunks.forEach((chunk, place) => {
    const column = checkColumn(chunk, COLUMN_NAMES[place]!, rows, footerStart);
    const expectedStart = columns.at(-1)?.end ?? start;
    if (column.start !== expectedStart) {
      throw new SegmentError(`a column starts at byte ${column.start}, not at ${expectedStart}`);
    }
    columns.push(column);
  });
  const chunkOf = (name: ColumnName) => chunks[columnNumber(name)]!;
  const boundsOf = (name: ColumnName) => checkBounds(chunkOf(name), name);
  const filterOf = (name: FilteredColumn) => checkFilter(chunkOf(name), name, footerStart);
  const ids = boundsOf("event_id");
  return {
    rows,
    firstEventId: eventId(ids.min),
    lastEventId: eventId(ids.max),
    columns,
    bounds: { source: boundsOf("source"), stream: boundsOf("stream"), kind: boundsOf("kind") },
    filters: {
      stream: filterOf("stream"),
      record_key: filterOf("record_key"),
      batch_id: filterOf("batch_id"),
    },
  };
}

function checkColumn(
  { file_path, meta_data: meta }: ColumnChunk,
  name: ColumnName,
  rows: number,
  footerStart: number,
): ColumnPlace {
  const { path_in_schema: path, total_uncompressed_size: uncompressedBytes } = meta;
  const isOurs = file_path === undefined && path.length === 1 && path[0] === name &&
    meta.num_values === rows;
  if (!isOurs) throw new SegmentError(`${name}: not the column of a segment`);
  const start = meta.dictionary_page_offset ?? meta.data_page_offset;
  const end = start + meta.total_compressed_size;
  const isPossible = start < end && end <= footerStart &&
    uncompressedBytes <= SNAPPY_GROWTH_MAX * (end - start) &&
    uncompressedBytes <= COMMIT_BODY_BYTES_MAX;
  if (!isPossible) {
    throw new SegmentError(`${name}: ${uncompressedBytes} bytes from bytes ${start} to ${end}`);
  }
  return { start, end, uncompressedBytes };
}

function checkBounds({ meta_data }: ColumnChunk, name: ColumnName): ColumnBounds {
  const { min_value: min, max_value: max } = meta_data.statistics ?? {};
  if (min === undefined || max === undefined) {
    throw new SegmentError(`${name}: a row group without statistics`);
  }
  return { min: latin1(min), max: latin1(max) };
}

function checkFilter({ meta_data }: ColumnChunk, name: ColumnName, footerStart: number): FileRange {
  const { bloom_filter_offset: start, bloom_filter_length: sizeBytes } = meta_data;
  if (start === undefined || sizeBytes === undefined) {
    throw new SegmentError(`${name}: a row group without a Bloom filter`);
  }
  const end = start + sizeBytes + BLOOM_CRC_BYTES;
  if (end > footerStart || sizeBytes > BLOOM_FILTER_BYTES_MAX) {
    throw new SegmentError(`${name}: a Bloom filter from bytes ${start} to ${end}`);
  }
  return { start, end };
}

function latin1({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString("latin1");
}

function checkCounts(metadata: SegmentMetadata, rowGroups: RowGroup[], rows: number): void {
  const counted = rowGroups.reduce((sum, rowGroup) => sum + rowGroup.rows, 0);
  if (counted !== rows || counted !== metadata.events) {
    throw new SegmentError(`${metadata.events} events in ${rows} rows, ${counted} in row groups`);
  }
  const first = rowGroups[0]!.firstEventId;
  const last = rowGroups.at(-1)!.lastEventId;
  if (first !== metadata.first_event_id || last !== metadata.last_event_id) {
    throw new SegmentError(
      `holds events ${first} to ${last}, but ${METADATA_KEY} says ` +
        `${metadata.first_event_id} to ${metadata.last_event_id}`,
    );
  }
}

function eventId(bound: string): string {
  const id = bound.length === UUID_BYTES ? uuidText(Buffer.from(bound, "latin1")) : "";
  if (!isEventId(id)) throw new SegmentError("a row group whose bounds are no event ids");
  return id;
}
