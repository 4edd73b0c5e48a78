/**
 * The columns in a segment, in file order, and their encodings (docs/format.md). Readers accept
 * only files with exactly this schema.
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

const INT64_BYTES = 8;
/** `YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ` */
const OCCURRED_AT_BYTES_MAX = 30;

interface Column {
  element: Omit<SchemaElement, "name">;
  /** Maximum size of a string; bounded because many lines may repeat one stored value. */
  valueBytesMax?: number;
}

/** The members of an event, and its batch digest. */
const COLUMNS = {
  event_id: fixed(UUID_BYTES, { logical_type: { UUID: {} } }),
  source: text(NAME_BYTES_MAX),
  stream: text(NAME_BYTES_MAX),
  record_key: text(RECORD_KEY_BYTES_MAX),
  kind: text(NAME_BYTES_MAX),
  occurred_at: text(OCCURRED_AT_BYTES_MAX, { repetition_type: "OPTIONAL" }),
  observed_at: {
    element: {
      type: "INT64",
      repetition_type: "REQUIRED",
      converted_type: "TIMESTAMP_MILLIS",
      logical_type: { TIMESTAMP: { isAdjustedToUTC: true, unit: { MILLIS: {} } } },
    },
  },
  payload: text(COMMIT_BODY_BYTES_MAX),
  content_hash: fixed(HASH_BYTES),
  batch_id: text(BATCH_ID_BYTES_MAX),
  batch_digest: fixed(HASH_BYTES),
  event_hash: fixed(HASH_BYTES),
} satisfies Record<string, Column>;

function text(valueBytesMax: number, others: Partial<Column["element"]> = {}): Column {
  const element: Column["element"] = {
    type: "BYTE_ARRAY",
    repetition_type: "REQUIRED",
    converted_type: "UTF8",
    logical_type: { STRING: {} },
    ...others,
  };
  return { element, valueBytesMax };
}

function fixed(type_length: number, others: Partial<Column["element"]> = {}): Column {
  const type = "FIXED_LEN_BYTE_ARRAY";
  return { element: { type, type_length, repetition_type: "REQUIRED", ...others } };
}

export type ColumnName = keyof typeof COLUMNS;

/** In schema order, which is also the order in row groups. */
export const COLUMN_NAMES: readonly ColumnName[] = Object.keys(COLUMNS) as ColumnName[];

export function columnNumber(name: ColumnName): number {
  return COLUMN_NAMES.indexOf(name);
}

export function columnElement(name: ColumnName): SchemaElement {
  return { name, ...COLUMNS[name].element };
}

export function columnFormat(name: ColumnName): ColumnFormat {
  const { element: { type, type_length, repetition_type }, valueBytesMax }: Column = COLUMNS[name];
  return {
    name,
    fixedBytes: type === "INT64" ? INT64_BYTES : type_length ?? null,
    valueBytesMax: valueBytesMax ?? 0,
    isOptional: repetition_type === "OPTIONAL",
  };
}

/** The Parquet schema: the root, then the columns. */
export const SEGMENT_SCHEMA: readonly SchemaElement[] = [
  { name: "events", num_children: COLUMN_NAMES.length },
  ...COLUMN_NAMES.map(columnElement),
];

/**
 * Columns with a Bloom filter per row group, and the maximum false-positive rate for each. Filter
 * sizes are powers of two, so most filters have a lower rate.
 * They are for other engines, since our own lookups use the segment's index.
 */
export const BLOOM_FILTERS = {
  record_key: 1e-3,
} satisfies Partial<Record<ColumnName, number>>;

export type FilteredColumn = keyof typeof BLOOM_FILTERS;
