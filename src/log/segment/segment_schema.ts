/**
 * The columns of a segment, in the order of the file, and how each is written (docs/format.md). The
 * reader takes a file only if its schema is exactly this one.
 */
import {
  BATCH_ID_BYTES_MAX,
  COMMIT_BODY_BYTES_MAX,
  NAME_BYTES_MAX,
  RECORD_KEY_BYTES_MAX,
} from "../../limits.ts";
import { HASH_BYTES, UUID_BYTES } from "../line/line_bytes.ts";
import type { ColumnFormat } from "../parquet/column_decoder.ts";
import type { SchemaElement } from "../parquet/parquet_format.ts";

/** The members of an event, and the digest of its batch. */
export const COLUMN_NAMES = [
  "event_id",
  "source",
  "stream",
  "record_key",
  "kind",
  "occurred_at",
  "observed_at",
  "payload",
  "content_hash",
  "batch_id",
  "batch_digest",
  "event_hash",
] as const;

const INT64_BYTES = 8;
/** `YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ` */
const OCCURRED_AT_BYTES_MAX = 30;

export type ColumnName = typeof COLUMN_NAMES[number];

/** Place of a column in the schema and in every row group. */
export function columnNumber(name: ColumnName): number {
  return COLUMN_NAMES.indexOf(name);
}

const COLUMN_TYPES: Record<ColumnName, Omit<SchemaElement, "name">> = {
  event_id: { ...fixedBytes(UUID_BYTES), logical_type: { UUID: {} } },
  source: text(),
  stream: text(),
  record_key: text(),
  kind: text(),
  occurred_at: { ...text(), repetition_type: "OPTIONAL" },
  observed_at: {
    type: "INT64",
    repetition_type: "REQUIRED",
    converted_type: "TIMESTAMP_MILLIS",
    logical_type: { TIMESTAMP: { isAdjustedToUTC: true, unit: { MILLIS: {} } } },
  },
  payload: text(),
  content_hash: fixedBytes(HASH_BYTES),
  batch_id: text(),
  batch_digest: fixedBytes(HASH_BYTES),
  event_hash: fixedBytes(HASH_BYTES),
};

/**
 * Longest value of each text column, in bytes; what a line repeats must be bounded by more than its
 * file.
 */
const TEXT_BYTES_MAX: Partial<Record<ColumnName, number>> = {
  source: NAME_BYTES_MAX,
  stream: NAME_BYTES_MAX,
  record_key: RECORD_KEY_BYTES_MAX,
  kind: NAME_BYTES_MAX,
  occurred_at: OCCURRED_AT_BYTES_MAX,
  payload: COMMIT_BODY_BYTES_MAX,
  batch_id: BATCH_ID_BYTES_MAX,
};

/** How the values of a column are stored. */
export function columnFormat(name: ColumnName): ColumnFormat {
  const { type, type_length, repetition_type } = columnElement(name);
  return {
    name,
    fixedBytes: type === "INT64" ? INT64_BYTES : type_length ?? null,
    valueBytesMax: TEXT_BYTES_MAX[name] ?? 0,
    isOptional: repetition_type === "OPTIONAL",
  };
}

/** The schema of the file: its root, then the columns. */
export const SEGMENT_SCHEMA: readonly SchemaElement[] = [
  { name: "events", num_children: COLUMN_NAMES.length },
  ...COLUMN_NAMES.map(columnElement),
];

export function columnElement(name: ColumnName): SchemaElement {
  return { name, ...COLUMN_TYPES[name] };
}

/**
 * Columns with a Bloom filter for each row group, and the share of values that it lets pass by
 * mistake. Filters come in powers of two, so it is less in most row groups.
 *
 * A `record_key` is looked up in all row groups, thousands in a large log; a batch only in those of
 * segments whose key filter passes it, where a false positive decodes four columns.
 */
export const BLOOM_FILTERS = {
  stream: 1e-3,
  record_key: 1e-3,
  batch_id: 1e-4,
} satisfies Partial<Record<ColumnName, number>>;

export type FilteredColumn = keyof typeof BLOOM_FILTERS;

function text(): Omit<SchemaElement, "name"> {
  return {
    type: "BYTE_ARRAY",
    repetition_type: "REQUIRED",
    converted_type: "UTF8",
    logical_type: { STRING: {} },
  };
}

function fixedBytes(sizeBytes: number): Omit<SchemaElement, "name"> {
  return { type: "FIXED_LEN_BYTE_ARRAY", type_length: sizeBytes, repetition_type: "REQUIRED" };
}
