/**
 * Reads a segment's footer: its metadata, and where its column chunks and its index are. Accepts
 * only what the writer produces: this schema, contiguous row groups from the start of the file, and
 * sizes within their limits. `hyparquet` reads no more than what was accepted here. A CRC-32 before
 * the footer covers it and its length; other readers ignore it, as nothing refers to it.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import {
  type ColumnChunk,
  type FileMetaData,
  parquetMetadata,
  type RowGroup as ParquetRowGroup,
  type SchemaElement,
} from "hyparquet";
import { isEventId } from "../../event/event_id.ts";
import {
  COMMIT_BODY_BYTES_MAX,
  ROW_GROUP_ROWS_MAX,
  SEGMENT_FOOTER_BYTES_MAX,
} from "../../limits.ts";
import { sumOf } from "../../sum.ts";
import { UUID_BYTES, uuidText } from "../line/line_bytes.ts";
import type { ChunkPlace } from "../parquet/chunk_check.ts";
import { RAW_VALUES } from "../parquet/column_reader.ts";
import { parseThrift } from "../parquet/thrift.ts";
import { type FileRange, type FileReader, readRange } from "../storage/storage.ts";
import { SegmentError } from "../storage/errors.ts";
import { decodeMetadata, METADATA_KEY, type SegmentMetadata } from "./segment_metadata.ts";
import { COLUMN_NAMES, type ColumnName, SEGMENT_SCHEMA } from "./segment_schema.ts";

/** Every Parquet file starts and ends with these bytes. */
const MAGIC: Buffer = Buffer.from("PAR1");
/** Size of the CRC-32 before the footer. */
export const FOOTER_CRC_BYTES = 4;
/** Size of the footer's length and the magic bytes. */
export const TRAILER_BYTES = 8;
/** Maximum expansion by Snappy: 64 bytes from a three-byte copy. */
const SNAPPY_GROWTH_MAX = 22;
const CRC_DIGITS = 8;

/** Where a row group is; can be sent between threads. */
export interface RowGroup {
  rows: number;
  firstEventId: string;
  lastEventId: string;
  /** In schema order. */
  columns: ChunkPlace[];
}

export interface SegmentFooter {
  metadata: Omit<SegmentMetadata, "chunk_crcs">;
  /** The segment's own index. */
  index: FileRange;
  /** Oldest first. */
  rowGroups: readonly RowGroup[];
}

/** Reads a segment's footer. @throws {SegmentError} if the file is not a segment. */
export async function readFooter(file: FileReader, sizeBytes: number): Promise<SegmentFooter> {
  const { footer, start } = await readFooterBytes(file, sizeBytes);
  const { end } = parseThrift(footer, 0);
  if (end !== footer.length - TRAILER_BYTES) {
    throw new SegmentError("the footer has trailing bytes");
  }
  try {
    const options = { parsers: RAW_VALUES, geoparquet: false };
    return checkFooter(parquetMetadata(footer, options), start);
  } catch (cause) {
    if (cause instanceof SegmentError) throw cause;
    // In a crafted footer, a member may have another type than the library declares.
    throw new SegmentError(`malformed footer: ${(cause as Error).message}`, { cause });
  }
}

function checkFooter(parquet: FileMetaData, footerStart: number): SegmentFooter {
  const [first] = parquet.key_value_metadata ?? [];
  if (first?.key !== METADATA_KEY) throw new SegmentError(`no ${METADATA_KEY} metadata`);
  const { chunk_crcs, ...metadata } = decodeMetadata(first.value ?? "");
  const { index_start: start, index_bytes } = metadata;
  const index = { start, end: start + index_bytes };
  if (start < MAGIC.length || index.end > footerStart) {
    throw new SegmentError(`invalid index in bytes [${start}, ${index.end})`);
  }
  if (schemaText(parquet.schema) !== SCHEMA_TEXT) {
    throw new SegmentError("the schema differs from the segment schema");
  }
  const rowGroups = checkRowGroups(parquet, chunk_crcs, metadata.index_start);
  const rows = Number(parquet.num_rows);
  const counted = sumOf(rowGroups, (rowGroup) => rowGroup.rows);
  if (counted !== rows || counted !== metadata.events) {
    const found = `the footer has ${rows} rows and its row groups have ${counted}`;
    throw new SegmentError(`${found}, but ${METADATA_KEY} says ${metadata.events} events`);
  }
  return { metadata, index, rowGroups };
}

const SCHEMA_TEXT = schemaText(SEGMENT_SCHEMA);

/** Returns the elements with their members in one order, without those that are undefined. */
function schemaText(elements: readonly SchemaElement[]): string {
  const members = elements.map((element) => Object.entries(element).sort());
  return JSON.stringify(
    members.map((entries) => entries.filter(([, value]) => value !== undefined)),
  );
}

function checkRowGroups(
  { row_groups }: FileMetaData,
  crcs: readonly string[],
  rowsEnd: number,
): RowGroup[] {
  if (row_groups.length !== crcs.length || crcs.length === 0) {
    throw new SegmentError(`has ${row_groups.length} row groups, but CRCs of ${crcs.length}`);
  }
  const rowGroups: RowGroup[] = [];
  let at = MAGIC.length;
  row_groups.forEach((next, number) => {
    const rowGroup = checkRowGroup(next, crcs[number]!, { start: at, end: rowsEnd });
    const last = rowGroups.at(-1);
    if (last !== undefined && rowGroup.firstEventId <= last.lastEventId) {
      throw new SegmentError(
        `a row group starts with event ${rowGroup.firstEventId}, but the previous one ends with ` +
          `event ${last.lastEventId}`,
        { code: "order_invalid" },
      );
    }
    rowGroups.push(rowGroup);
    at = rowGroup.columns.at(-1)!.end;
  });
  return rowGroups;
}

/** @param within where the row group starts, and where row groups end. */
function checkRowGroup(
  { num_rows, columns: chunks }: ParquetRowGroup,
  crcs: string,
  within: FileRange,
): RowGroup {
  const rows = Number(num_rows);
  if (!(Number.isInteger(rows) && rows > 0 && rows <= ROW_GROUP_ROWS_MAX)) {
    throw new SegmentError(`a row group has ${rows} rows, expected 1 to ${ROW_GROUP_ROWS_MAX}`);
  }
  const count = COLUMN_NAMES.length;
  if (chunks.length !== count || crcs.length !== count * CRC_DIGITS) {
    throw new SegmentError(`a row group has ${chunks.length} columns, expected ${count}`);
  }
  const columns: ChunkPlace[] = [];
  let { start } = within;
  chunks.forEach((chunk, place) => {
    const crc = parseInt(crcs.slice(place * CRC_DIGITS, (place + 1) * CRC_DIGITS), 16);
    const column = checkColumn(chunk, COLUMN_NAMES[place]!, rows, { start, end: within.end });
    columns.push({ ...column, crc });
    start = column.end;
  });
  const uncompressedBytes = sumOf(columns, (column) => column.uncompressedBytes);
  const fileBytes = start - within.start;
  if (uncompressedBytes > COMMIT_BODY_BYTES_MAX || fileBytes > COMMIT_BODY_BYTES_MAX) {
    throw new SegmentError(`a row group has ${uncompressedBytes} bytes, ${fileBytes} in the file`);
  }
  const { min_value, max_value } = chunks[0]!.meta_data!.statistics ?? {};
  return { rows, firstEventId: eventId(min_value), lastEventId: eventId(max_value), columns };
}

function checkColumn(
  { file_path, meta_data: meta }: ColumnChunk,
  name: ColumnName,
  rows: number,
  within: FileRange,
): Omit<ChunkPlace, "crc"> {
  const isOurs = file_path === undefined && meta !== undefined &&
    meta.path_in_schema.join() === name && meta.num_values === BigInt(rows) &&
    meta.codec === "SNAPPY";
  if (!isOurs) throw new SegmentError(`${name}: the column chunk has the wrong path or row count`);
  const dataStart = Number(meta.data_page_offset);
  const start = Number(meta.dictionary_page_offset ?? meta.data_page_offset);
  const end = start + Number(meta.total_compressed_size);
  const uncompressedBytes = Number(meta.total_uncompressed_size);
  const isPossible = [dataStart, end, uncompressedBytes].every(Number.isSafeInteger) &&
    start === within.start && start <= dataStart && dataStart < end &&
    end <= within.end && uncompressedBytes >= 0 &&
    uncompressedBytes <= SNAPPY_GROWTH_MAX * (end - start);
  if (isPossible) return { start, end, dataStart, uncompressedBytes };
  const range = `${uncompressedBytes} uncompressed bytes in [${start}, ${end})`;
  throw new SegmentError(`${name}: invalid column chunk: ${range}, expected byte ${within.start}`);
}

function eventId(bound: unknown): string {
  const id = bound instanceof Uint8Array && bound.length === UUID_BYTES ? uuidText(bound) : "";
  if (!isEventId(id)) throw new SegmentError("row group statistics for event_id are not event ids");
  return id;
}

/**
 * Returns the footer, its length and the magic bytes, and the file offset of their CRC-32.
 * @throws {SegmentError} if the file is damaged or not a segment.
 */
async function readFooterBytes(
  file: FileReader,
  sizeBytes: number,
): Promise<{ footer: Buffer; start: number }> {
  const bytesMin = MAGIC.length + FOOTER_CRC_BYTES + TRAILER_BYTES;
  if (sizeBytes < bytesMin) throw new SegmentError(`file is too short: ${sizeBytes} bytes`);
  const opening = await readRange(file, 0, MAGIC.length);
  const trailer = await readRange(file, sizeBytes - TRAILER_BYTES, sizeBytes);
  if (!opening.equals(MAGIC)) throw new SegmentError("no Parquet magic at byte 0");
  const magicStart = sizeBytes - MAGIC.length;
  if (!trailer.subarray(-MAGIC.length).equals(MAGIC)) {
    throw new SegmentError(`no Parquet magic at byte ${magicStart}`);
  }
  const footerBytes = trailer.readUInt32LE();
  const start = sizeBytes - TRAILER_BYTES - footerBytes - FOOTER_CRC_BYTES;
  if (start < MAGIC.length || footerBytes > SEGMENT_FOOTER_BYTES_MAX) {
    throw new SegmentError(`invalid footer size before byte ${magicStart}: ${footerBytes} bytes`);
  }
  const checked = await readRange(file, start, sizeBytes);
  const footer = checked.subarray(FOOTER_CRC_BYTES);
  if (footerCrc(footer) !== checked.readUInt32LE()) {
    throw new SegmentError(`the footer at byte ${start} does not match its CRC-32`);
  }
  return { footer, start };
}

/** @param footer the footer, its length and the magic bytes. */
export function footerCrc(footer: Uint8Array): number {
  return crc32(footer.subarray(0, -MAGIC.length));
}
