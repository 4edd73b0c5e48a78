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
  FILE_META_DATA,
  type FileMetaData,
  type ParquetRowGroup,
} from "../parquet/parquet_format.ts";
import type { FileRange } from "../parquet/read_range.ts";
import { KEY_PAGE_BYTES } from "./key_filter.ts";
import { UUID_BYTES, uuidText } from "../line/line_bytes.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import { decodeMetadata, METADATA_KEY, type SegmentMetadata } from "./segment_metadata.ts";
import { COLUMN_NAMES, type ColumnName, columnNumber, SEGMENT_SCHEMA } from "./segment_schema.ts";
import { SNAPPY_GROWTH_MAX } from "../parquet/snappy.ts";
import type { StorageFile } from "../storage/storage.ts";

/** Longest Bloom filter of a row group that a reader accepts. */
const BLOOM_FILTER_BYTES_MAX = 64 * 1024;

/** One column of one row group. */
export interface ColumnPlace {
  /** Its pages in the file. */
  start: number;
  end: number;
  uncompressedBytes: number;
  /**
   * Column statistics as latin1, a character for each byte, which sorts as the bytes do and takes
   * little memory. Null where there are none.
   */
  bounds: { min: string; max: string } | null;
  /** Its Bloom filter in the file, with its CRC-32. */
  filter: FileRange | null;
}

export interface RowGroup {
  /** Number of events. */
  rows: number;
  firstEventId: string;
  lastEventId: string;
  /** In the order of the schema. */
  columns: ColumnPlace[];
}

export interface SegmentFooter {
  metadata: SegmentMetadata;
  /** Null once its row groups are decoded: it takes 30 KiB, times a hundred segments. */
  parquet: CheckedFooter | null;
}

/**
 * Reads the footer of a segment; its row groups are left to `readRowGroups()`.
 * @throws {SegmentError} when the file is no segment.
 */
export async function readFooter(file: StorageFile, sizeBytes: number): Promise<SegmentFooter> {
  const parquet = await readCheckedFooter(file, sizeBytes);
  const { key_value_metadata: [first] } = decodeFooter(FILE_META_DATA, parquet);
  if (first?.key !== METADATA_KEY) throw new SegmentError(`no ${METADATA_KEY}`);
  const metadata = decodeMetadata(first.value);
  const { key_filter: filter, stream_index: streams } = metadata;
  const isFilter = filter.bytes % KEY_PAGE_BYTES === 0 && filter.bytes <= KEY_FILTER_BYTES_MAX;
  if (!isFilter || filter.offset + filter.bytes > parquet.start) {
    throw new SegmentError(`a filter of ${filter.bytes} bytes from byte ${filter.offset}`);
  }
  if (streams.index_bytes > streams.bytes || streams.offset + streams.bytes > parquet.start) {
    throw new SegmentError(`a stream index of ${streams.bytes} bytes from byte ${streams.offset}`);
  }
  return { metadata, parquet };
}

/** Decodes the row groups, from oldest to newest. Call once. @throws {SegmentError} */
export function readRowGroups(footer: SegmentFooter): RowGroup[] {
  const { metadata, parquet } = footer;
  assert(parquet !== null, "the row groups of a footer are read once");
  const file = decodeFooter(FILE_META_DATA, parquet);
  if (!isDeepStrictEqual(file.schema, SEGMENT_SCHEMA)) {
    throw new SegmentError("the columns are not those of a segment");
  }
  const rowGroups = checkRowGroups(file, parquet.start);
  checkCounts(metadata, rowGroups, file.num_rows);
  footer.parquet = null;
  return rowGroups;
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
  const ids = columns[columnNumber("event_id")]!.bounds;
  if (ids === null) throw new SegmentError("a row group without the bounds of its ids");
  return { rows, firstEventId: eventId(ids.min), lastEventId: eventId(ids.max), columns };
}

function checkColumn(
  { file_path, meta_data: meta }: ColumnChunk,
  name: ColumnName,
  rows: number,
  footerStart: number,
): ColumnPlace {
  const { path_in_schema: path, total_uncompressed_size: uncompressedBytes, statistics } = meta;
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
  const { min_value: min, max_value: max } = statistics ?? {};
  const isBounded = min !== undefined && max !== undefined;
  const bounds = isBounded ? { min: latin1(min), max: latin1(max) } : null;
  return { start, end, uncompressedBytes, bounds, filter: filterRange(meta, footerStart) };
}

function filterRange(meta: ColumnChunk["meta_data"], footerStart: number): FileRange | null {
  const { bloom_filter_offset: start, bloom_filter_length: sizeBytes } = meta;
  if (start === undefined || sizeBytes === undefined) return null;
  const end = start + sizeBytes + BLOOM_CRC_BYTES;
  if (end > footerStart || sizeBytes > BLOOM_FILTER_BYTES_MAX) {
    throw new SegmentError(`a Bloom filter from bytes ${start} to ${end}`);
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
