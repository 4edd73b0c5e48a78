/**
 * Reads what stands at the end of a segment: what it says of itself, and where its row groups are
 * and what is known of each without reading it. Takes only what the writer writes: this schema, row
 * groups that fill the file from its start, sizes within their bounds.
 */
import { Buffer } from "node:buffer";
import {
  type ColumnChunk,
  type FileMetaData,
  parquetMetadata,
  type RowGroup as ParquetRowGroup,
  type SchemaElement,
} from "hyparquet";
import type { ParquetParsers } from "hyparquet/src/types.js";
import { assert } from "../../assert.ts";
import { isEventId } from "../../event/event_id.ts";
import { COMMIT_BODY_BYTES_MAX, KEY_FILTER_BYTES_MAX, ROW_GROUP_EVENTS_MAX } from "../../limits.ts";
import { type CheckedFooter, footerText, MAGIC, readCheckedFooter } from "../parquet/footer.ts";
import { FILTER_BLOCK_BYTES, KEY_PAGE_BYTES } from "./key_filter.ts";
import { UUID_BYTES, uuidText } from "../line/line_bytes.ts";
import { decoding, SegmentError } from "../parquet/segment_error.ts";
import {
  decodeMetadata,
  type FilePlace,
  METADATA_KEY,
  type SegmentMetadata,
} from "./segment_metadata.ts";
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
  /** What its pages have in memory. */
  uncompressedBytes: number;
  /**
   * No value lies outside these, as latin1: a character for each byte, so that they are in the
   * order of the bytes and take little memory. Null where there are none.
   */
  bounds: { min: string; max: string } | null;
  /** Where its Bloom filter is. */
  filter: { start: number; end: number } | null;
}

/** A part of a segment that is read at once. */
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
  /** Null once its row groups have been read: 30 KiB for each of a hundred segments. */
  parquet: CheckedFooter | null;
}

/**
 * Reads the footer of a segment; its row groups are left to `readRowGroups()`.
 * @throws {SegmentError} when the file is no segment.
 */
export async function readFooter(file: StorageFile, sizeBytes: number): Promise<SegmentFooter> {
  const parquet = await readCheckedFooter(file, sizeBytes);
  const metadata = decodeMetadata(footerText(parquet, METADATA_KEY));
  const { key_filter: filter, stream_index: streams } = metadata;
  const isFilter = filter.bytes % KEY_PAGE_BYTES === 0 && filter.bytes <= KEY_FILTER_BYTES_MAX;
  if (!isFilter || !isBefore(filter, parquet.start)) {
    throw new SegmentError(`a filter of ${filter.bytes} bytes from byte ${filter.offset}`);
  }
  if (streams.index_bytes > streams.bytes || !isBefore(streams, parquet.start)) {
    throw new SegmentError(`a stream index of ${streams.bytes} bytes from byte ${streams.offset}`);
  }
  return { metadata, parquet };
}

function isBefore({ bytes, offset }: FilePlace, end: number): boolean {
  return offset + bytes <= end;
}

/** The row groups of a segment, from oldest to newest; to be read once. @throws {SegmentError} */
export function readRowGroups(footer: SegmentFooter): RowGroup[] {
  const { metadata, parquet } = footer;
  assert(parquet !== null, "the row groups of a footer are read once");
  return decoding("the footer", () => {
    const { start, bytes } = parquet;
    const decoded = parquetMetadata(bytes, { parsers: RAW, geoparquet: false });
    if (describe(decoded.schema) !== describe(SEGMENT_SCHEMA)) {
      throw new SegmentError("the columns are not those of a segment");
    }
    const rowGroups = checkRowGroups(decoded, start);
    checkFilters(rowGroups, [metadata.key_filter.offset, start]);
    checkCounts(metadata, rowGroups, count(decoded.num_rows, "rows"));
    footer.parquet = null;
    return rowGroups;
  });
}

/** Bounds are compared as bytes, so they are left as they are. */
const RAW = {
  stringFromBytes: (bytes: Uint8Array) => bytes,
  uuidFromBytes: (bytes: Uint8Array) => bytes,
} as unknown as ParquetParsers;

function checkRowGroups(parquet: FileMetaData, footerStart: number): RowGroup[] {
  const rowGroups: RowGroup[] = [];
  let at = MAGIC.length;
  for (const parquetGroup of parquet.row_groups) {
    const rowGroup = checkRowGroup(parquetGroup, at, footerStart);
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

function checkRowGroup(parquet: ParquetRowGroup, start: number, footerStart: number): RowGroup {
  const rows = count(parquet.num_rows, "rows of a row group");
  if (rows === 0 || rows > ROW_GROUP_EVENTS_MAX) {
    throw new SegmentError(`a row group of ${rows} rows, outside 1 to ${ROW_GROUP_EVENTS_MAX}`);
  }
  if (parquet.columns.length !== COLUMN_NAMES.length) {
    throw new SegmentError(`a row group of ${parquet.columns.length} columns`);
  }
  const columns: ColumnPlace[] = [];
  parquet.columns.forEach((chunk, place) => {
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
  const isOurs = file_path === undefined && meta !== undefined && meta.codec === "SNAPPY" &&
    meta.path_in_schema.length === 1 && meta.path_in_schema[0] === name &&
    count(meta.num_values, "values") === rows;
  if (!isOurs) throw new SegmentError(`${name}: not the column of a segment`);
  const start = count(meta.dictionary_page_offset ?? meta.data_page_offset, "offset");
  const end = start + count(meta.total_compressed_size, "size");
  const uncompressedBytes = count(meta.total_uncompressed_size, "size");
  const isPossible = start < end && end <= footerStart &&
    uncompressedBytes <= SNAPPY_GROWTH_MAX * (end - start) &&
    uncompressedBytes <= COMMIT_BODY_BYTES_MAX;
  if (!isPossible) {
    throw new SegmentError(`${name}: ${uncompressedBytes} bytes from bytes ${start} to ${end}`);
  }
  const { min_value: min, max_value: max } = meta.statistics ?? {};
  const isBounded = min instanceof Uint8Array && max instanceof Uint8Array;
  return {
    start,
    end,
    uncompressedBytes,
    bounds: isBounded ? { min: latin1(min), max: latin1(max) } : null,
    filter: filterPlace(meta.bloom_filter_offset, meta.bloom_filter_length, footerStart),
  };
}

function latin1({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length).toString("latin1");
}

function filterPlace(
  offset: bigint | undefined,
  length: number | undefined,
  footerStart: number,
): ColumnPlace["filter"] {
  if (offset === undefined && length === undefined) return null;
  const start = count(offset, "offset");
  const end = start + count(length, "size");
  if (end > footerStart || end - start > BLOOM_FILTER_BYTES_MAX) {
    throw new SegmentError(`a Bloom filter from bytes ${start} to ${end}`);
  }
  return { start, end };
}

/**
 * Bloom filters lie one behind the other. A block of one is read from its place alone, so a place
 * that is wrong must not pass for a filter that rules out.
 * @param starts of what can follow the last one: the filter over all keys, and the footer.
 */
function checkFilters(rowGroups: RowGroup[], starts: readonly number[]): void {
  const places = rowGroups.flatMap(({ columns }) => columns.map(({ filter }) => filter))
    .filter((place) => place !== null);
  for (const [number, { start, end }] of places.entries()) {
    const next = places[number + 1];
    const isFollowed = next === undefined ? starts.includes(end) : next.start === end;
    if (!isFollowed || end - start <= FILTER_BLOCK_BYTES) {
      throw new SegmentError(`a Bloom filter from bytes ${start} to ${end}`);
    }
  }
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

/** A size or count that the library reads as a number or a bigint. */
function count(value: unknown, what: string): number {
  const number = typeof value === "bigint" ? Number(value) : value;
  if (!Number.isSafeInteger(number) || (number as number) < 0) {
    throw new SegmentError(`the ${what} in the footer is ${String(value)}`);
  }
  return number as number;
}

function eventId(bound: string): string {
  const id = bound.length === UUID_BYTES ? uuidText(Buffer.from(bound, "latin1")) : "";
  if (!isEventId(id)) throw new SegmentError("a row group whose bounds are no event ids");
  return id;
}

/** What matters of a schema, as a text to compare. */
function describe(schema: SchemaElement[]): string {
  return JSON.stringify(schema.map((element) => [
    element.name,
    element.type,
    element.type_length,
    element.repetition_type,
    element.num_children,
    element.converted_type,
    Object.entries(element.logical_type ?? {}).sort(),
  ]));
}
