import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { encodeFooter, readFileMetaData } from "../../../src/log/parquet/footer.ts";
import {
  FILE_KEY_VALUES,
  FILE_META_DATA,
  type FileMetaData,
} from "../../../src/log/parquet/parquet_format.ts";
import type { ThriftType } from "../../../src/log/parquet/thrift_compact.ts";
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

async function read<Value>(type: ThriftType<Value>, bytes: Buffer) {
  const disk = new SimulatedDisk(new Map([["f", bytes]]));
  return await readFileMetaData(type, await disk.open("f", "read"), bytes.length);
}

test("readFileMetaData() restores all or part of what encodeFooter() wrote", async () => {
  const bytes = fileWith(encodeFooter(FILE));
  const { key_value_metadata } = FILE;
  assert.deepEqual(await read(FILE_META_DATA, bytes), { value: FILE, start: 604 });
  assert.deepEqual(await read(FILE_KEY_VALUES, bytes), {
    value: { key_value_metadata },
    start: 604,
  });
});

test("readFileMetaData() rejects a footer with any bit flipped", async () => {
  const footer = encodeFooter(FILE);
  for (let bit = 0; bit < 8 * footer.length; bit++) {
    const bytes = fileWith(flipBit(footer, bit));
    await assert.rejects(
      read(FILE_META_DATA, bytes),
      /^SegmentError: .*(CRC-32|size|magic)/,
      `bit ${bit}`,
    );
  }
});

test("readFileMetaData() rejects trailing bytes", async () => {
  const footer = encodeFooter(FILE);
  const bytes = Buffer.concat([footer.subarray(0, -8), Buffer.of(0), footer.subarray(-8)]);
  bytes.writeUInt32LE(bytes.length - 12, bytes.length - 8);
  bytes.writeUInt32LE(crc32(bytes.subarray(4, -4)), 0);
  for (const type of [FILE_META_DATA, FILE_KEY_VALUES] as ThriftType<unknown>[]) {
    await assert.rejects(
      read(type, fileWith(bytes)),
      /^SegmentError: the footer has trailing bytes/,
    );
  }
});
