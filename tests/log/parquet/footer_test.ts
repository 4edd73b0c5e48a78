import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { decodeFooter, encodeFooter, readCheckedFooter } from "../../../src/log/parquet/footer.ts";
import {
  type ColumnChunk,
  FILE_KEY_VALUES,
  FILE_META_DATA,
  type FileMetaData,
} from "../../../src/log/parquet/parquet_format.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import { flipBit } from "../../support/corrupt.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

const PLAIN: ColumnChunk = {
  file_offset: 4,
  meta_data: {
    type: "FIXED_LEN_BYTE_ARRAY",
    encodings: ["PLAIN"],
    path_in_schema: ["id"],
    codec: "SNAPPY",
    num_values: 1000,
    total_uncompressed_size: 2 ** 40,
    total_compressed_size: 100,
    data_page_offset: 4,
    statistics: { null_count: 0, max_value: Buffer.from("zz"), min_value: Buffer.from("aa") },
    bloom_filter_offset: 300,
    bloom_filter_length: 50,
  },
  offset_index_offset: 500,
  offset_index_length: 50,
  column_index_offset: 400,
  column_index_length: 50,
};
const INDEXED: ColumnChunk = {
  file_offset: 104,
  meta_data: {
    type: "BYTE_ARRAY",
    encodings: ["PLAIN", "RLE_DICTIONARY"],
    path_in_schema: ["text"],
    codec: "SNAPPY",
    num_values: 1000,
    total_uncompressed_size: 300,
    total_compressed_size: 96,
    data_page_offset: 150,
    dictionary_page_offset: 104,
    statistics: { null_count: 1000 },
  },
};

const FILE: FileMetaData = {
  version: 2,
  schema: [
    { name: "root", num_children: 2 },
    { name: "id", type: "FIXED_LEN_BYTE_ARRAY", type_length: 2, repetition_type: "REQUIRED" },
    { name: "text", type: "BYTE_ARRAY", repetition_type: "OPTIONAL", converted_type: "UTF8" },
  ],
  num_rows: 1000,
  row_groups: [{
    columns: [PLAIN, INDEXED],
    total_byte_size: 2 ** 40 + 300,
    num_rows: 1000,
    total_compressed_size: 196,
  }],
  key_value_metadata: [{ key: "facts", value: '{"é":1}' }, { key: "more", value: "" }],
  created_by: "a test",
  column_orders: [{ TYPE_ORDER: {} }, { TYPE_ORDER: {} }],
};

function fileWith(footer: Buffer): Buffer {
  return Buffer.concat([Buffer.from("PAR1"), Buffer.alloc(600), footer]);
}

async function read(bytes: Buffer) {
  const disk = new SimulatedDisk(new Map([["f", bytes]]));
  return await readCheckedFooter(await disk.open("f", "read"), bytes.length);
}

test("decodeFooter() gives back what encodeFooter() wrote, or a part of it", async () => {
  const footer = await read(fileWith(encodeFooter(FILE)));
  assert.equal(footer.start, 604);
  const { key_value_metadata } = FILE;
  assert.deepEqual(decodeFooter(FILE_META_DATA, footer), FILE);
  assert.deepEqual(decodeFooter(FILE_KEY_VALUES, footer), { key_value_metadata });
});

test("readCheckedFooter() refuses a footer with any bit changed", async () => {
  const footer = encodeFooter(FILE);
  for (let bit = 0; bit < 8 * footer.length; bit++) {
    await assert.rejects(read(fileWith(flipBit(footer, bit))), SegmentError, `bit ${bit}`);
  }
});

test("decodeFooter() refuses bytes behind the struct", () => {
  const bytes = encodeFooter(FILE).subarray(4, -7);
  for (const type of [FILE_META_DATA, FILE_KEY_VALUES]) {
    assert.throws(() => decodeFooter<unknown>(type, { start: 0, bytes }), SegmentError);
  }
});
