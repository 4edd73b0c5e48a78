import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { type ColumnFormat, decodeColumn } from "../../../src/log/parquet/column_decoder.ts";
import { ABSENT, textAt } from "../../../src/log/parquet/column_values.ts";
import {
  type ColumnContent,
  encodeIndices,
  writeColumn,
} from "../../../src/log/parquet/column_writer.ts";
import { FileSink } from "../../../src/log/parquet/file_sink.ts";
import { PlainValues } from "../../../src/log/parquet/plain_values.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

const REQUIRED: ColumnFormat = {
  name: "kind",
  fixedBytes: null,
  valueBytesMax: 5,
  isOptional: false,
};
const OPTIONAL = { ...REQUIRED, isOptional: true };

function plain(...texts: string[]): Buffer {
  const values = new PlainValues();
  for (const text of texts) values.add(Buffer.from(text));
  return values.values;
}

async function written(content: ColumnContent): Promise<Buffer> {
  const disk = new SimulatedDisk();
  const sink = new FileSink(await disk.open("f", "create"));
  writeColumn(sink, { type: "BYTE_ARRAY", name: "kind" }, content);
  await sink.flush();
  return disk.contents("f");
}

function decode(format: ColumnFormat, rows: number, bytes: Buffer): (string | null)[] {
  const column = decodeColumn(format, { bytes, offset: 4, rows, uncompressedBytes: 1000 });
  return [...column.starts].map((start, row) => start === ABSENT ? null : textAt(column, row));
}

const PLAIN = { rows: 3, values: plain("a", "", "abcde") };
const LEVELS = {
  rows: 3,
  values: plain("a", "b"),
  levels: Uint8Array.of(1, 0, 1),
  statistics: { null_count: 1 },
};
const INDEXED = {
  rows: 4,
  values: encodeIndices([1, 0, 1, 2], 3),
  dictionary: { values: plain("x", "yy", "z"), count: 3 },
};

test("decodeColumn() restores what writeColumn() wrote", async () => {
  assert.deepEqual(decode(REQUIRED, 3, await written(PLAIN)), ["a", "", "abcde"]);
  assert.deepEqual(decode(OPTIONAL, 3, await written(LEVELS)), ["a", null, "b"]);
  assert.deepEqual(decode(REQUIRED, 4, await written(INDEXED)), ["yy", "x", "yy", "z"]);
});

test("decodeColumn() rejects pages that do not add up to the rows of a column chunk", async () => {
  const wrong: [string, ColumnFormat, number, ColumnContent][] = [
    ["fewer rows", REQUIRED, 4, PLAIN],
    ["more rows", REQUIRED, 2, PLAIN],
    ["fewer values than rows", REQUIRED, 3, { ...PLAIN, values: plain("a", "b") }],
    ["more values than rows", REQUIRED, 3, { ...PLAIN, values: plain("a", "b", "c", "d") }],
    ["a value that is too long", REQUIRED, 3, { ...PLAIN, values: plain("a", "b", "abcdef") }],
    ["no levels", OPTIONAL, 3, PLAIN],
    ["levels for more values", OPTIONAL, 3, { ...LEVELS, levels: Uint8Array.of(1, 1, 1) }],
    ["an unknown index", REQUIRED, 4, { ...INDEXED, values: encodeIndices([1, 0, 1, 3], 3) }],
    ["no indices", REQUIRED, 4, { ...INDEXED, values: Buffer.alloc(0) }],
    ["a larger dictionary", REQUIRED, 4, {
      ...INDEXED,
      dictionary: { ...INDEXED.dictionary, count: 5 },
    }],
  ];
  for (const [name, format, rows, content] of wrong) {
    const bytes = await written(content);
    assert.throws(() => decode(format, rows, bytes), SegmentError, name);
  }
});

test("decodeColumn() rejects truncated, damaged and surplus pages", async () => {
  const bytes = await written(INDEXED);
  for (let end = 0; end < bytes.length; end++) {
    assert.throws(() => decode(REQUIRED, 4, bytes.subarray(0, end)), SegmentError, `at ${end}`);
  }
  assert.throws(() => decode(REQUIRED, 4, Buffer.concat([bytes, bytes])), SegmentError);
  bytes[bytes.length - 1]! ^= 1;
  assert.throws(() => decode(REQUIRED, 4, bytes), /^SegmentError: the page at byte \d+ has/);
});
