import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { decodeFooter, encodeFooter, readCheckedFooter } from "../../../src/log/parquet/footer.ts";
import {
  FILE_KEY_VALUES,
  FILE_META_DATA,
  type FileMetaData,
} from "../../../src/log/parquet/parquet_format.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import { flipBit } from "../../support/corrupt.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

const FILE: FileMetaData = {
  version: 2,
  schema: [
    { name: "root", num_children: 1 },
    { name: "text", type: "BYTE_ARRAY", repetition_type: "OPTIONAL", converted_type: "UTF8" },
  ],
  num_rows: 1000,
  row_groups: [],
  key_value_metadata: [{ key: "facts", value: '{"é":1}' }, { key: "more", value: "" }],
  created_by: "a test",
  column_orders: [{ TYPE_ORDER: {} }],
};

function fileWith(footer: Buffer): Buffer {
  return Buffer.concat([Buffer.from("PAR1"), Buffer.alloc(600), footer]);
}

async function read(bytes: Buffer) {
  const disk = new SimulatedDisk(new Map([["f", bytes]]));
  return await readCheckedFooter(await disk.open("f", "read"), bytes.length);
}

test("decodeFooter() restores all or part of what encodeFooter() wrote", async () => {
  const footer = await read(fileWith(encodeFooter(FILE)));
  assert.equal(footer.start, 604);
  const { key_value_metadata } = FILE;
  assert.deepEqual(decodeFooter(FILE_META_DATA, footer), FILE);
  assert.deepEqual(decodeFooter(FILE_KEY_VALUES, footer), { key_value_metadata });
});

test("readCheckedFooter() rejects a footer with any bit flipped", async () => {
  const footer = encodeFooter(FILE);
  for (let bit = 0; bit < 8 * footer.length; bit++) {
    await assert.rejects(read(fileWith(flipBit(footer, bit))), SegmentError, `bit ${bit}`);
  }
});

test("decodeFooter() rejects trailing bytes", () => {
  const bytes = encodeFooter(FILE).subarray(4, -7);
  for (const type of [FILE_META_DATA, FILE_KEY_VALUES]) {
    assert.throws(() => decodeFooter<unknown>(type, { start: 0, bytes }), SegmentError);
  }
});
