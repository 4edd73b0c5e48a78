import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  pageCrc,
  type PageHeader,
  readPageHeader,
} from "../../../src/log/parquet/column_decoder.ts";
import { PAGE_HEADER } from "../../../src/log/parquet/parquet_format.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import { encodeThrift } from "../../../src/log/parquet/thrift_compact.ts";

const DICTIONARY: PageHeader = {
  type: "DICTIONARY_PAGE",
  uncompressed_page_size: 300,
  compressed_page_size: 100,
  crc: -7,
  dictionary_page_header: { num_values: 7, encoding: "PLAIN" },
};

const ROWS = {
  num_values: 1024,
  num_nulls: 24,
  num_rows: 1024,
  encoding: "RLE_DICTIONARY",
  definition_levels_byte_length: 100,
  repetition_levels_byte_length: 0,
  is_compressed: true,
} as const;

const DATA: PageHeader = {
  type: "DATA_PAGE_V2",
  uncompressed_page_size: 1_000_000,
  compressed_page_size: 100,
  crc: 1,
  data_page_header_v2: ROWS,
};

/** A header, then a page. */
function withPage(header: PageHeader): Buffer {
  return Buffer.concat([encodeThrift(PAGE_HEADER, header), Buffer.alloc(100)]);
}

test("readPageHeader() reads the header of a page, and finds its end", () => {
  for (const header of [DICTIONARY, DATA]) {
    const bytes = withPage(header);
    assert.deepEqual(readPageHeader(bytes, 0), { header, end: bytes.length - 100 });
  }
});

test("readPageHeader() refuses a page that is longer than the bytes behind the header", () => {
  const bytes = withPage(DATA);
  assert.throws(() => readPageHeader(bytes.subarray(0, -1), 0), SegmentError);
});

test("readPageHeader() refuses what can't be the header of a page", () => {
  const withRows = (rows: Partial<Record<keyof typeof ROWS, unknown>>): PageHeader => ({
    ...DATA,
    data_page_header_v2: { ...ROWS, ...rows } as NonNullable<PageHeader["data_page_header_v2"]>,
  });
  const wrong: PageHeader[] = [
    { ...DICTIONARY, dictionary_page_header: undefined },
    { ...DICTIONARY, dictionary_page_header: { num_values: -1, encoding: "PLAIN" } },
    { ...DICTIONARY, uncompressed_page_size: -1 },
    { ...DATA, compressed_page_size: -1 },
    { ...DATA, compressed_page_size: 2 ** 31 },
    { ...DATA, uncompressed_page_size: 99 },
    { ...DATA, data_page_header_v2: undefined },
    withRows({ num_rows: -1, num_values: -1 }),
    withRows({ num_values: 1023 }),
    withRows({ num_nulls: 1025 }),
    withRows({ definition_levels_byte_length: 101 }),
    withRows({ repetition_levels_byte_length: 1 }),
    withRows({ is_compressed: false }),
  ];
  for (const [number, header] of wrong.entries()) {
    assert.throws(() => readPageHeader(withPage(header), 0), SegmentError, `${number}`);
  }
});

test("pageCrc() is the CRC-32 of the parts, one behind the other", () => {
  assert.equal(pageCrc(Buffer.from("1234"), Buffer.from("56789")), 0xcbf4_3926 | 0);
});
