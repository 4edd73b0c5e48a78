import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  type DataPageHeader,
  type DictionaryPageHeader,
  encodePageHeader,
  pageCrc,
  readPageHeader,
} from "../../../src/log/parquet/page_header.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";

const DICTIONARY: DictionaryPageHeader = {
  kind: "dictionary",
  compressedBytes: 100,
  uncompressedBytes: 300,
  crc: 0xffff_fff0,
  values: 7,
};

const DATA: DataPageHeader = {
  kind: "data",
  compressedBytes: 100,
  uncompressedBytes: 1_000_000,
  crc: 1,
  rows: 1024,
  nulls: 24,
  encoding: "RLE_DICTIONARY",
  levelBytes: 100,
};

/** A header, then a page. */
function withPage(header: DictionaryPageHeader | DataPageHeader): Buffer {
  return Buffer.concat([encodePageHeader(header), Buffer.alloc(100)]);
}

test("readPageHeader() gives back what encodePageHeader() wrote", () => {
  for (const header of [DICTIONARY, DATA, { ...DATA, encoding: "PLAIN" } as const]) {
    const bytes = withPage(header);
    assert.deepEqual(readPageHeader(bytes, 0), { header, end: bytes.length - 100 });
  }
});

test("readPageHeader() refuses a page that is longer than the bytes behind the header", () => {
  const bytes = withPage(DATA);
  assert.throws(() => readPageHeader(bytes.subarray(0, -1), 0), SegmentError);
});

test("readPageHeader() refuses numbers that can't be right", () => {
  const wrong = [
    { ...DICTIONARY, values: -1 },
    { ...DICTIONARY, uncompressedBytes: -1 },
    { ...DATA, compressedBytes: -1 },
    { ...DATA, compressedBytes: 2 ** 31 },
    { ...DATA, rows: -1 },
    { ...DATA, nulls: 1025 },
    { ...DATA, levelBytes: 101 },
    { ...DATA, uncompressedBytes: 99 },
  ];
  for (const header of wrong) {
    const bytes = withPage(header);
    assert.throws(() => readPageHeader(bytes, 0), SegmentError);
  }
});

test("pageCrc() is the CRC-32 of the parts, one behind the other", () => {
  assert.equal(pageCrc(Buffer.from("1234"), Buffer.from("56789")), 0xcbf4_3926);
});
