/**
 * What the footer of a Parquet file says (parquet.thrift, FileMetaData): the schema, of each column
 * of each row group where its pages are and what is known of their values, and texts under keys.
 * Columns are flat and compressed with Snappy.
 */
import type { Buffer } from "node:buffer";
import { isDeepStrictEqual } from "node:util";
import type { Statistics } from "./column_statistics.ts";
import { ENCODING_NUMBERS } from "./page_header.ts";
import { SegmentError } from "./segment_error.ts";
import {
  binary,
  encodeThrift,
  i32,
  i64,
  list,
  readThrift,
  struct,
  type ThriftFields,
  type ThriftItem,
  type ThriftStruct,
  TRUE,
} from "./thrift_compact.ts";

/** Types of values, as they are stored, with Parquet's numbers. */
const TYPES = { INT64: 2, BYTE_ARRAY: 6, FIXED_LEN_BYTE_ARRAY: 7 };
const REPETITION_TYPES = { REQUIRED: 0, OPTIONAL: 1 };

/** A column. */
export interface SchemaElement {
  name: string;
  type: keyof typeof TYPES;
  /** Size of each value in bytes, for FIXED_LEN_BYTE_ARRAY. */
  type_length?: number;
  repetition_type: keyof typeof REPETITION_TYPES;
  /** What values stand for, where other engines are to know. */
  logical_type?: keyof typeof LOGICAL_TYPES;
}

/** Bytes [start, end) of a file. */
export interface FileRange {
  start: number;
  end: number;
}

/** One column of a row group. */
export interface ColumnMetadata {
  /** Its pages. */
  start: number;
  end: number;
  /** Where its data pages start: behind the dictionary, if it has one. */
  dataStart: number;
  /** All pages with their headers, decompressed. */
  uncompressedBytes: number;
  /** Null where there are none. */
  statistics: Statistics | null;
  bloomFilter: FileRange | null;
  columnIndex: FileRange | null;
  offsetIndex: FileRange | null;
}

export interface RowGroupMetadata {
  rows: number;
  /** In the order of the schema. */
  columns: ColumnMetadata[];
}

export interface FileMetadata {
  schema: readonly SchemaElement[];
  rowGroups: RowGroupMetadata[];
  keyValues: Record<string, string>;
  createdBy: string;
}

/** Numbers of the fields in each struct. */
const FILE = {
  version: 1,
  schema: 2,
  rows: 3,
  rowGroups: 4,
  keyValues: 5,
  createdBy: 6,
  columnOrders: 7,
};
const ELEMENT = {
  type: 1,
  typeLength: 2,
  repetition: 3,
  name: 4,
  children: 5,
  converted: 6,
  logical: 10,
};
const ROW_GROUP = { columns: 1, uncompressedBytes: 2, rows: 3, compressedBytes: 6 };
const CHUNK = {
  filePath: 1,
  start: 2,
  metadata: 3,
  offsetIndex: 4,
  offsetIndexBytes: 5,
  columnIndex: 6,
  columnIndexBytes: 7,
};
const COLUMN = {
  type: 1,
  encodings: 2,
  path: 3,
  codec: 4,
  rows: 5,
  uncompressedBytes: 6,
  compressedBytes: 7,
  dataStart: 9,
  dictionaryStart: 11,
  statistics: 12,
  bloomFilter: 14,
  bloomFilterBytes: 15,
};
const STATISTICS = { nulls: 3, max: 5, min: 6 };
const KEY_VALUE = { key: 1, value: 2 };

/** Version of the format that has the data pages of segments. */
const FORMAT_VERSION = 2;
const SNAPPY = 1;
/** Logical types, each with the older converted type, if there is one. */
const LOGICAL_TYPES = {
  STRING: { [ELEMENT.converted]: i32(0), [ELEMENT.logical]: struct({ 1: struct({}) }) },
  TIMESTAMP_MILLIS: {
    [ELEMENT.converted]: i32(9),
    // In UTC, and in milliseconds.
    [ELEMENT.logical]: struct({ 8: struct({ 1: TRUE, 2: struct({ 1: struct({}) }) }) }),
  },
  UUID: { [ELEMENT.logical]: struct({ 14: struct({}) }) },
} satisfies Record<string, ThriftFields>;
/** The order of a column's values is that of their type. */
const ORDER_OF_TYPE = struct({ 1: struct({}) });

export function encodeFileMetadata(file: FileMetadata): Buffer {
  const { schema, rowGroups, keyValues, createdBy } = file;
  const texts = Object.entries(keyValues);
  return encodeThrift({
    [FILE.version]: i32(FORMAT_VERSION),
    [FILE.schema]: schemaItem(schema),
    [FILE.rows]: i64(sum(rowGroups.map(({ rows }) => rows))),
    [FILE.rowGroups]: list(rowGroups.map((rowGroup) => rowGroupItem(rowGroup, schema))),
    [FILE.keyValues]: list(
      texts.map(([key, value]) =>
        struct({ [KEY_VALUE.key]: binary(key), [KEY_VALUE.value]: binary(value) })
      ),
    ),
    [FILE.createdBy]: binary(createdBy),
    [FILE.columnOrders]: list(schema.map(() => ORDER_OF_TYPE)),
  });
}

/** The root, then the columns. */
function schemaItem(schema: readonly SchemaElement[]): ThriftItem {
  const root = struct({ [ELEMENT.name]: binary("events"), [ELEMENT.children]: i32(schema.length) });
  return list([root, ...schema.map(elementItem)]);
}

function elementItem(element: SchemaElement): ThriftItem {
  const { name, type, type_length, repetition_type, logical_type } = element;
  return struct({
    [ELEMENT.type]: i32(TYPES[type]),
    [ELEMENT.typeLength]: type_length === undefined ? undefined : i32(type_length),
    [ELEMENT.repetition]: i32(REPETITION_TYPES[repetition_type]),
    [ELEMENT.name]: binary(name),
    ...(logical_type && LOGICAL_TYPES[logical_type]),
  });
}

function rowGroupItem(
  { rows, columns }: RowGroupMetadata,
  schema: readonly SchemaElement[],
): ThriftItem {
  return struct({
    [ROW_GROUP.columns]: list(
      columns.map((column, place) => chunkItem(column, schema[place]!, rows)),
    ),
    [ROW_GROUP.uncompressedBytes]: i64(sum(columns.map((column) => column.uncompressedBytes))),
    [ROW_GROUP.rows]: i64(rows),
    [ROW_GROUP.compressedBytes]: i64(sum(columns.map(({ start, end }) => end - start))),
  });
}

function chunkItem(column: ColumnMetadata, element: SchemaElement, rows: number): ThriftItem {
  const { offsetIndex, columnIndex } = column;
  return struct({
    [CHUNK.start]: i64(column.start),
    [CHUNK.metadata]: struct(columnFields(column, element, rows)),
    ...rangeFields(offsetIndex, CHUNK.offsetIndex, CHUNK.offsetIndexBytes),
    ...rangeFields(columnIndex, CHUNK.columnIndex, CHUNK.columnIndexBytes),
  });
}

function columnFields(column: ColumnMetadata, element: SchemaElement, rows: number): ThriftFields {
  const { start, end, dataStart, statistics, bloomFilter } = column;
  const plain = i32(ENCODING_NUMBERS.PLAIN);
  const hasDictionary = start < dataStart;
  return {
    [COLUMN.type]: i32(TYPES[element.type]),
    [COLUMN.encodings]: list(
      hasDictionary ? [plain, i32(ENCODING_NUMBERS.RLE_DICTIONARY)] : [plain],
    ),
    [COLUMN.path]: list([binary(element.name)]),
    [COLUMN.codec]: i32(SNAPPY),
    [COLUMN.rows]: i64(rows),
    [COLUMN.uncompressedBytes]: i64(column.uncompressedBytes),
    [COLUMN.compressedBytes]: i64(end - start),
    [COLUMN.dataStart]: i64(dataStart),
    [COLUMN.dictionaryStart]: hasDictionary ? i64(start) : undefined,
    [COLUMN.statistics]: statistics === null ? undefined : struct({
      [STATISTICS.nulls]: i64(statistics.nulls),
      [STATISTICS.max]: statistics.max === null ? undefined : binary(statistics.max),
      [STATISTICS.min]: statistics.min === null ? undefined : binary(statistics.min),
    }),
    ...rangeFields(bloomFilter, COLUMN.bloomFilter, COLUMN.bloomFilterBytes),
  };
}

function rangeFields(range: FileRange | null, offset: number, bytes: number): ThriftFields {
  return range === null
    ? {}
    : { [offset]: i64(range.start), [bytes]: i32(range.end - range.start) };
}

/**
 * Reads the footer of a file with that schema. Its numbers have the right type and are not
 * negative, its ranges end behind their start and its counts fit one another; where the ranges lie
 * in the file is the caller's to check.
 * @throws {SegmentError}
 */
export function decodeFileMetadata(
  bytes: Buffer,
  schema: readonly SchemaElement[],
): FileMetadata {
  const file = readWhole(bytes);
  const expected = readThrift(encodeThrift({ [FILE.schema]: schemaItem(schema) })).struct;
  if (!isDeepStrictEqual(file.list(FILE.schema), expected.list(FILE.schema))) {
    throw new SegmentError("the columns are not those of a segment");
  }
  const rowGroups = file.structs(FILE.rowGroups).map((group) => rowGroupOf(group, schema));
  const rows = sum(rowGroups.map((rowGroup) => rowGroup.rows));
  if (count(file, FILE.rows) !== rows) {
    throw new SegmentError(`${count(file, FILE.rows)} rows, but ${rows} in row groups`);
  }
  const createdBy = file.bytes(FILE.createdBy).toString();
  return { schema, rowGroups, keyValues: keyValuesOf(file), createdBy };
}

/** The texts under keys alone: most of a footer is about row groups. @throws {SegmentError} */
export function decodeKeyValues(bytes: Buffer): FileMetadata["keyValues"] {
  return keyValuesOf(readWhole(bytes, FILE.keyValues));
}

function readWhole(bytes: Buffer, only?: number): ThriftStruct {
  const { struct: file, end } = readThrift(bytes, 0, only);
  if (end !== bytes.length) throw new SegmentError("the footer has another size");
  return file;
}

function keyValuesOf(file: ThriftStruct): FileMetadata["keyValues"] {
  const texts = file.structs(FILE.keyValues).map((entry) => [
    entry.bytes(KEY_VALUE.key).toString(),
    entry.bytes(KEY_VALUE.value).toString(),
  ]);
  return Object.fromEntries(texts);
}

function rowGroupOf(group: ThriftStruct, schema: readonly SchemaElement[]): RowGroupMetadata {
  const rows = count(group, ROW_GROUP.rows);
  const chunks = group.structs(ROW_GROUP.columns);
  if (chunks.length !== schema.length) {
    throw new SegmentError(`a row group of ${chunks.length} columns`);
  }
  return { rows, columns: chunks.map((chunk, place) => columnOf(chunk, schema[place]!, rows)) };
}

function columnOf(chunk: ThriftStruct, element: SchemaElement, rows: number): ColumnMetadata {
  const column = chunk.struct(CHUNK.metadata);
  const path = column.list(COLUMN.path);
  const isRight = !chunk.has(CHUNK.filePath) && path.length === 1 &&
    String(path[0]) === element.name && column.int(COLUMN.type) === TYPES[element.type] &&
    column.int(COLUMN.codec) === SNAPPY && column.int(COLUMN.rows) === rows;
  if (!isRight) throw new SegmentError(`${element.name}: not the column of a segment`);
  const dataStart = count(column, COLUMN.dataStart);
  const start = column.has(COLUMN.dictionaryStart)
    ? count(column, COLUMN.dictionaryStart)
    : dataStart;
  return {
    start,
    end: start + count(column, COLUMN.compressedBytes),
    dataStart,
    uncompressedBytes: count(column, COLUMN.uncompressedBytes),
    statistics: column.has(COLUMN.statistics)
      ? statisticsOf(column.struct(COLUMN.statistics))
      : null,
    bloomFilter: rangeOf(column, COLUMN.bloomFilter, COLUMN.bloomFilterBytes),
    columnIndex: rangeOf(chunk, CHUNK.columnIndex, CHUNK.columnIndexBytes),
    offsetIndex: rangeOf(chunk, CHUNK.offsetIndex, CHUNK.offsetIndexBytes),
  };
}

function statisticsOf(fields: ThriftStruct): Statistics {
  const { min, max } = STATISTICS;
  if (fields.has(min) !== fields.has(max)) throw new SegmentError("statistics of one bound");
  return {
    min: fields.has(min) ? fields.bytes(min) : null,
    max: fields.has(max) ? fields.bytes(max) : null,
    nulls: count(fields, STATISTICS.nulls),
  };
}

function rangeOf(fields: ThriftStruct, offset: number, bytes: number): FileRange | null {
  if (!fields.has(offset)) return null;
  const start = count(fields, offset);
  return { start, end: start + count(fields, bytes) };
}

function count(fields: ThriftStruct, field: number): number {
  const value = fields.int(field);
  if (value >= 0) return value;
  throw new SegmentError(`the footer has ${value} as field ${field} of a struct`);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
