/**
 * The structs in a Parquet file, named as in parquet-format's parquet.thrift. Fields and enum
 * values that segments don't use are omitted.
 */
import {
  binary,
  bool,
  choice,
  i32,
  list,
  optional,
  required,
  size32,
  size64,
  struct,
  text,
  type ThriftValue,
} from "./thrift_compact.ts";

const EMPTY = struct({});
const TYPE = choice({ INT64: 2, BYTE_ARRAY: 6, FIXED_LEN_BYTE_ARRAY: 7 });
const ENCODING = choice({ PLAIN: 0, RLE_DICTIONARY: 8 });

export const PAGE_HEADER = struct({
  type: required(1, choice({ DICTIONARY_PAGE: 2, DATA_PAGE_V2: 3 })),
  uncompressed_page_size: required(2, size32),
  compressed_page_size: required(3, size32),
  crc: required(4, i32),
  dictionary_page_header: optional(
    7,
    struct({ num_values: required(1, size32), encoding: required(2, choice({ PLAIN: 0 })) }),
  ),
  data_page_header_v2: optional(
    8,
    struct({
      num_values: required(1, size32),
      num_nulls: required(2, size32),
      num_rows: required(3, size32),
      encoding: required(4, ENCODING),
      definition_levels_byte_length: required(5, size32),
      repetition_levels_byte_length: required(6, size32),
      is_compressed: required(7, bool),
    }),
  ),
});
export type PageHeader = ThriftValue<typeof PAGE_HEADER>;

const SCHEMA_ELEMENT = struct({
  type: optional(1, TYPE),
  type_length: optional(2, size32),
  repetition_type: optional(3, choice({ REQUIRED: 0, OPTIONAL: 1 })),
  name: required(4, text),
  num_children: optional(5, size32),
  converted_type: optional(6, choice({ UTF8: 0, TIMESTAMP_MILLIS: 9 })),
  logical_type: optional(
    10,
    struct({
      STRING: optional(1, EMPTY),
      TIMESTAMP: optional(
        8,
        struct({
          isAdjustedToUTC: required(1, bool),
          unit: required(2, struct({ MILLIS: optional(1, EMPTY) })),
        }),
      ),
      UUID: optional(14, EMPTY),
    }),
  ),
});
export type SchemaElement = ThriftValue<typeof SCHEMA_ELEMENT>;

const STATISTICS = struct({
  null_count: required(3, size64),
  max_value: optional(5, binary),
  min_value: optional(6, binary),
});
export type Statistics = ThriftValue<typeof STATISTICS>;

const COLUMN_META_DATA = struct({
  type: required(1, TYPE),
  encodings: required(2, list(ENCODING)),
  path_in_schema: required(3, list(text)),
  codec: required(4, choice({ SNAPPY: 1 })),
  num_values: required(5, size64),
  total_uncompressed_size: required(6, size64),
  total_compressed_size: required(7, size64),
  data_page_offset: required(9, size64),
  dictionary_page_offset: optional(11, size64),
  statistics: optional(12, STATISTICS),
  bloom_filter_offset: optional(14, size64),
  bloom_filter_length: optional(15, size32),
});

const COLUMN_CHUNK = struct({
  file_path: optional(1, text),
  file_offset: required(2, size64),
  meta_data: required(3, COLUMN_META_DATA),
  offset_index_offset: optional(4, size64),
  offset_index_length: optional(5, size32),
  column_index_offset: optional(6, size64),
  column_index_length: optional(7, size32),
});
export type ColumnChunk = ThriftValue<typeof COLUMN_CHUNK>;

const ROW_GROUP = struct({
  columns: required(1, list(COLUMN_CHUNK)),
  total_byte_size: required(2, size64),
  num_rows: required(3, size64),
  total_compressed_size: required(6, size64),
});
export type ParquetRowGroup = ThriftValue<typeof ROW_GROUP>;

const KEY_VALUES = required(5, list(struct({ key: required(1, text), value: required(2, text) })));

export const FILE_META_DATA = struct({
  version: required(1, i32),
  schema: required(2, list(SCHEMA_ELEMENT)),
  num_rows: required(3, size64),
  row_groups: required(4, list(ROW_GROUP)),
  key_value_metadata: KEY_VALUES,
  created_by: required(6, text),
  column_orders: required(7, list(struct({ TYPE_ORDER: optional(1, EMPTY) }))),
});
export type FileMetaData = ThriftValue<typeof FILE_META_DATA>;

/** FileMetaData with only the key-value metadata; decoding skips the rest. */
export const FILE_KEY_VALUES = struct({ key_value_metadata: KEY_VALUES });

export const COLUMN_INDEX = struct({
  null_pages: required(1, list(bool)),
  min_values: required(2, list(binary)),
  max_values: required(3, list(binary)),
  boundary_order: required(4, choice({ UNORDERED: 0 })),
  null_counts: required(5, list(size64)),
});

export const OFFSET_INDEX = struct({
  page_locations: required(
    1,
    list(struct({
      offset: required(1, size64),
      compressed_page_size: required(2, size32),
      first_row_index: required(3, size64),
    })),
  ),
});

export const BLOOM_FILTER_HEADER = struct({
  numBytes: required(1, size32),
  algorithm: required(2, struct({ BLOCK: optional(1, EMPTY) })),
  hash: required(3, struct({ XXHASH: optional(1, EMPTY) })),
  compression: required(4, struct({ UNCOMPRESSED: optional(1, EMPTY) })),
});
