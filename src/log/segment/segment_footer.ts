/**
 * Reads a segment's footer: its metadata, and the location and statistics of each column chunk.
 * Accepts only what the writer produces: this schema, contiguous row groups from the start of the
 * file, and sizes within their limits.
 */
import { Buffer } from "node:buffer";
import { isDeepStrictEqual } from "node:util";
import { isEventId } from "../../event/event_id.ts";
import { COMMIT_BODY_BYTES_MAX, ROW_GROUP_EVENTS_MAX } from "../../limits.ts";
import { BLOOM_CRC_BYTES } from "../parquet/bloom_filter.ts";
import { MAGIC, readFileMetaData } from "../parquet/footer.ts";
import {
  type ColumnChunk,
  FILE_KEY_VALUES,
  FILE_META_DATA,
  type FileMetaData,
  type ParquetRowGroup,
} from "../parquet/parquet_format.ts";
import type { FileRange } from "../parquet/read_range.ts";
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
import { sumOf } from "../../sum.ts";

/** Largest Bloom filter per row group that a reader accepts. */
const BLOOM_FILTER_BYTES_MAX = 64 * 1024;

/** Columns whose statistics prune row groups. */
export const BOUNDED_COLUMNS = ["source", "stream", "kind"] as const;

/** The pages for one column in one row group. */
interface ColumnPlace extends FileRange {
  uncompressedBytes: number;
}

interface ColumnBounds {
  min: Buffer;
  max: Buffer;
}

export interface RowGroup {
  rows: number;
  firstEventId: string;
  lastEventId: string;
  /** In schema order. */
  columns: ColumnPlace[];
  bounds: Record<typeof BOUNDED_COLUMNS[number], ColumnBounds>;
  /** File ranges of the Bloom filters, each with its CRC-32. */
  filters: Record<FilteredColumn, FileRange>;
}

export interface SegmentFooter {
  metadata: SegmentMetadata;
  /** The segment's own index. */
  index: FileRange;
}

/**
 * Reads a segment's footer without its row groups. The check for a new batch needs only the index.
 * @throws {SegmentError} if the file is not a segment.
 */
export async function readFooter(file: FileReader, sizeBytes: number): Promise<SegmentFooter> {
  const { value, start: footerStart } = await readFileMetaData(FILE_KEY_VALUES, file, sizeBytes);
  const { key_value_metadata: [first] } = value;
  if (first?.key !== METADATA_KEY) throw new SegmentError(`no ${METADATA_KEY} metadata`);
  const metadata = decodeMetadata(first.value);
  const start = footerStart - metadata.index_bytes;
  if (start < MAGIC.length) {
    throw new SegmentError(`invalid index: ${metadata.index_bytes} bytes at byte ${start}`);
  }
  return { metadata, index: { start, end: footerStart } };
}

/** Reads the row groups from a footer, oldest first. @throws {SegmentError} */
export async function readRowGroups(
  reader: FileReader,
  sizeBytes: number,
  { metadata, index }: SegmentFooter,
): Promise<RowGroup[]> {
  const { value: file } = await readFileMetaData(FILE_META_DATA, reader, sizeBytes);
  if (!isDeepStrictEqual(file.schema, SEGMENT_SCHEMA)) {
    throw new SegmentError("the schema differs from the segment schema");
  }
  const rowGroups = checkRowGroups(file, index.start);
  checkCounts(metadata, rowGroups, file.num_rows);
  return rowGroups;
}

function checkRowGroups({ row_groups }: FileMetaData, rowsEnd: number): RowGroup[] {
  const rowGroups: RowGroup[] = [];
  let at = MAGIC.length;
  for (const next of row_groups) {
    const rowGroup = checkRowGroup(next, at, rowsEnd);
    const last = rowGroups.at(-1);
    if (last !== undefined && rowGroup.firstEventId <= last.lastEventId) {
      throw new SegmentError(
        `a row group starts with event ${rowGroup.firstEventId}, but the previous one ends with ` +
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
  rowsEnd: number,
): RowGroup {
  if (rows === 0 || rows > ROW_GROUP_EVENTS_MAX) {
    throw new SegmentError(`a row group has ${rows} rows, expected 1 to ${ROW_GROUP_EVENTS_MAX}`);
  }
  if (chunks.length !== COLUMN_NAMES.length) {
    throw new SegmentError(
      `a row group has ${chunks.length} columns, expected ${COLUMN_NAMES.length}`,
    );
  }
  const columns: ColumnPlace[] = [];
  chunks.forEach((chunk, place) => {
    const column = checkColumn(chunk, COLUMN_NAMES[place]!, rows, rowsEnd);
    const expectedStart = columns.at(-1)?.end ?? start;
    if (column.start !== expectedStart) {
      const found = `a column chunk starts at byte ${column.start}`;
      throw new SegmentError(`${found}, expected ${expectedStart}`);
    }
    columns.push(column);
  });
  const chunkOf = (name: ColumnName) => chunks[columnNumber(name)]!;
  const boundsOf = (name: ColumnName) => checkBounds(chunkOf(name), name);
  const filterOf = (name: FilteredColumn) => checkFilter(chunkOf(name), name, rowsEnd);
  const ids = boundsOf("event_id");
  return {
    rows,
    firstEventId: eventId(ids.min),
    lastEventId: eventId(ids.max),
    columns,
    bounds: { source: boundsOf("source"), stream: boundsOf("stream"), kind: boundsOf("kind") },
    filters: { record_key: filterOf("record_key") },
  };
}

function checkColumn(
  { file_path, meta_data: meta }: ColumnChunk,
  name: ColumnName,
  rows: number,
  rowsEnd: number,
): ColumnPlace {
  const { path_in_schema: path, total_uncompressed_size: uncompressedBytes } = meta;
  const isOurs = file_path === undefined && path.length === 1 && path[0] === name &&
    meta.num_values === rows;
  if (!isOurs) throw new SegmentError(`${name}: the column chunk has the wrong path or row count`);
  const start = meta.dictionary_page_offset ?? meta.data_page_offset;
  const end = start + meta.total_compressed_size;
  const isPossible = start < end && end <= rowsEnd &&
    uncompressedBytes <= SNAPPY_GROWTH_MAX * (end - start) &&
    uncompressedBytes <= COMMIT_BODY_BYTES_MAX;
  if (!isPossible) {
    const range = `${uncompressedBytes} uncompressed bytes in [${start}, ${end})`;
    throw new SegmentError(`${name}: invalid column chunk: ${range}`);
  }
  return { start, end, uncompressedBytes };
}

function checkBounds({ meta_data }: ColumnChunk, name: ColumnName): ColumnBounds {
  const { min_value: min, max_value: max } = meta_data.statistics ?? {};
  if (min === undefined || max === undefined) {
    throw new SegmentError(`${name}: a row group has no min/max statistics`);
  }
  // Copy them, since views would keep the whole footer in memory.
  return { min: Buffer.from(min), max: Buffer.from(max) };
}

function checkFilter({ meta_data }: ColumnChunk, name: ColumnName, rowsEnd: number): FileRange {
  const { bloom_filter_offset: start, bloom_filter_length: sizeBytes } = meta_data;
  if (start === undefined || sizeBytes === undefined) {
    throw new SegmentError(`${name}: a row group has no Bloom filter`);
  }
  const end = start + sizeBytes + BLOOM_CRC_BYTES;
  if (end > rowsEnd || sizeBytes > BLOOM_FILTER_BYTES_MAX) {
    throw new SegmentError(`${name}: invalid Bloom filter in bytes [${start}, ${end})`);
  }
  return { start, end };
}

function checkCounts(metadata: SegmentMetadata, rowGroups: RowGroup[], rows: number): void {
  const counted = sumOf(rowGroups, (rowGroup) => rowGroup.rows);
  if (counted !== rows || counted !== metadata.events) {
    const found = `the footer has ${rows} rows and its row groups have ${counted}`;
    throw new SegmentError(`${found}, but ${METADATA_KEY} says ${metadata.events} events`);
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

function eventId(bound: Buffer): string {
  const id = bound.length === UUID_BYTES ? uuidText(bound) : "";
  if (!isEventId(id)) throw new SegmentError("row group statistics for event_id are not event ids");
  return id;
}
