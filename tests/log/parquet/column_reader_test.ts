import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import type { DecodedArray, SchemaElement } from "hyparquet";
import { ByteWriter, type ColumnSource, ParquetWriter } from "hyparquet-writer";
import { type ScanColumn, scanColumns } from "../../../src/log/parquet/column_reader.ts";
import { flipBit } from "../../support/corrupt.ts";

const TEXT: SchemaElement = {
  name: "text",
  type: "BYTE_ARRAY",
  repetition_type: "REQUIRED",
  converted_type: "UTF8",
};
const OPTIONAL: SchemaElement = { ...TEXT, name: "optional", repetition_type: "OPTIONAL" };
const FIXED: SchemaElement = {
  name: "fixed",
  type: "FIXED_LEN_BYTE_ARRAY",
  type_length: 16,
  repetition_type: "REQUIRED",
  logical_type: { type: "UUID" },
};
const TIME: SchemaElement = {
  name: "time",
  type: "INT64",
  repetition_type: "REQUIRED",
  converted_type: "TIMESTAMP_MILLIS",
};

/** Writes columns as one row group, and returns what a footer would say of each. */
async function write(
  elements: readonly SchemaElement[],
  data: readonly DecodedArray[],
  encoding: NonNullable<ColumnSource["encoding"]> = "PLAIN",
): Promise<ScanColumn[]> {
  const writer = new ByteWriter();
  const schema = [{ name: "root", num_children: elements.length }, ...elements];
  const parquet = new ParquetWriter({ writer, schema });
  const columnData = elements.map(({ name }, n) => ({ name, data: data[n]!, encoding }));
  await parquet.write({ columnData, rowGroupSize: data[0]!.length, pageSize: 0 });
  const bytes = Buffer.from(writer.getBytes());
  return parquet.row_groups[0]!.columns.map(({ meta_data: meta }, n) => {
    const start = Number(meta!.dictionary_page_offset ?? meta!.data_page_offset);
    const end = start + Number(meta!.total_compressed_size);
    const chunk = Uint8Array.from(bytes.subarray(start, end)).buffer;
    const place = {
      start,
      end,
      dataStart: Number(meta!.data_page_offset),
      uncompressedBytes: Number(meta!.total_uncompressed_size),
      crc: crc32(new Uint8Array(chunk)),
    };
    return { element: elements[n]!, place, chunk };
  });
}

const bytesOf = (...texts: string[]) => texts.map((text) => Uint8Array.from(Buffer.from(text)));
const UUIDS = [1, 2, 1].map((byte) => new Uint8Array(16).fill(byte));

type Case = [what: string, element: SchemaElement, values: unknown[]];

const PLAIN_CASES: Case[] = [
  ["strings", TEXT, bytesOf("a", "", "é")],
  ["a byte order mark", TEXT, bytesOf("\ufeff", "\ufeffa", "a\ufeff")],
  ["NULs", TEXT, bytesOf("\0", "\0\0", "a\0b")],
  ["bytes that are not UTF-8", TEXT, [Uint8Array.of(0xff), Uint8Array.of(0xc0, 0x80)]],
  ["a large value", TEXT, bytesOf("x".repeat(5_000_000), "y")],
  ["absent values", OPTIONAL, [null, ...bytesOf("a"), null, ...bytesOf("")]],
  ["only absent values", OPTIONAL, [null, null, null]],
  ["no absent values", OPTIONAL, bytesOf("a", "b")],
  ["UUIDs", FIXED, UUIDS],
  ["times", TIME, [0n, -1n, 253402300799999n]],
];
const DICTIONARY_CASES: Case[] = [
  ["strings", TEXT, bytesOf("a", "b", "a", "", "b")],
  ["a single value", TEXT, Array(2048).fill(Uint8Array.of(65))],
  ["two values", TEXT, Array.from({ length: 2048 }, (_, n) => Uint8Array.of(65 + n % 2))],
  ["as many values as rows", TEXT, bytesOf("a", "b", "c")],
  ["UUIDs", FIXED, UUIDS],
  ["times", TIME, [5n, 5n, 5n]],
];

for (
  const [encoding, cases] of [["PLAIN", PLAIN_CASES], ["RLE_DICTIONARY", DICTIONARY_CASES]] as const
) {
  test(`scanColumns() returns the values of ${encoding} pages as they are stored`, async () => {
    for (const [what, element, values] of cases) {
      const columns = await write([element], [values as DecodedArray], encoding);
      const [decoded] = await scanColumns(columns, values.length);
      assert.deepEqual(Array.from(decoded!), values, what);
    }
  });
}

test("scanColumns() rejects a chunk with any bit flipped, and names it", async () => {
  const [column] = await write([TEXT], [bytesOf("a", "b", "a")], "RLE_DICTIONARY");
  const chunk = new Uint8Array(column!.chunk);
  const { start, end } = column!.place;
  for (let bit = 0; bit < 8 * chunk.length; bit++) {
    const flipped = { ...column!, chunk: Uint8Array.from(flipBit(chunk, bit)).buffer };
    await assert.rejects(scanColumns([flipped], 3), (error: Error) => {
      assert.equal(error.name, "SegmentError");
      assert.ok(error.message.startsWith(`text in bytes [${start}, ${end}): has CRC-32 `));
      return true;
    });
  }
});

test("scanColumns() fails with a SegmentError for a flip whose CRC-32 is repaired", async () => {
  const values = bytesOf("a", "b", "a", "a", "a", "a", "a", "a");
  const [column] = await write([TEXT], [values], "RLE_DICTIONARY");
  const chunk = new Uint8Array(column!.chunk);
  for (let bit = 0; bit < 8 * chunk.length; bit++) {
    const bytes = Uint8Array.from(flipBit(chunk, bit));
    const repaired = { ...column!, chunk: bytes.buffer };
    repaired.place = { ...column!.place, crc: crc32(bytes) };
    try {
      const [decoded] = await scanColumns([repaired], values.length);
      assert.equal(decoded!.length, values.length, `bit ${bit}`);
    } catch (error) {
      assert.equal((error as Error).name, "SegmentError", `bit ${bit}: ${(error as Error).stack}`);
    }
  }
});

test("scanColumns() rejects chunks whose places contradict their pages", async () => {
  const [column] = await write([TEXT], [bytesOf("a", "b", "a")], "RLE_DICTIONARY");
  const { place } = column!;
  const cases: [what: string, change: Partial<ScanColumn["place"]>, rows: number][] = [
    ["no dictionary", { dataStart: place.start }, 3],
    ["fewer uncompressed bytes", { uncompressedBytes: 1 }, 3],
    ["fewer rows", {}, 2],
    ["more rows", {}, 4],
  ];
  for (const [what, change, rows] of cases) {
    const changed = { ...column!, place: { ...place, ...change } };
    await assert.rejects(scanColumns([changed], rows), /^SegmentError: text in bytes/, what);
  }
});
