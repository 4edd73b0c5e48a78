import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import { FOOTER_READ_BYTES, readFooterLayout } from "../../../src/log/parquet/footer_layout.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

interface KeyValue {
  key: string;
  value: string;
}

/** A Parquet file of one column, in so many row groups, with these keys. */
async function parquetFile(kvMetadata: KeyValue[], rowGroups = 1): Promise<Buffer> {
  const writer = new ByteWriter();
  const schema = [{ name: "root", num_children: 1 }, { name: "n", type: "INT32" as const }];
  const parquet = new ParquetWriter({ writer, schema, kvMetadata });
  const data = Array.from({ length: rowGroups }, (_, n) => n);
  await parquet.write({ columnData: [{ name: "n", data }], rowGroupSize: 1 });
  await parquet.finish();
  return Buffer.from(writer.getBytes());
}

async function readLayout(bytes: Uint8Array) {
  const storage = new SimulatedDisk(new Map([["0.parquet", bytes]]));
  const file = await storage.open("0.parquet", "read");
  const { values, head } = await readFooterLayout(file, bytes.length);
  const texts = [...values].map(([key, { start, end }]) => [
    key,
    Buffer.from(bytes.subarray(start, end)).toString(),
  ]);
  const reads = storage.operations.filter(({ kind }) => kind === "read");
  const readBytes = reads.reduce((sum, { sizeBytes }) => sum + sizeBytes!, 0);
  return { texts, head, readBytes };
}

test("readFooterLayout() finds values of any length without reading long ones", async () => {
  const cases: KeyValue[][] = [
    [],
    [{ key: "a", value: "" }],
    [{ key: "a", value: "x" }, { key: "b.c", value: "y".repeat(127) }],
    [{ key: "long", value: "x".repeat(3_000_000) }, { key: "b", value: "y".repeat(16_384) }],
  ];
  for (const keys of cases) {
    const bytes = await parquetFile(keys);
    if (keys.length === 0) {
      await assert.rejects(readLayout(bytes), SegmentError);
      continue;
    }
    const { texts, readBytes } = await readLayout(bytes);
    assert.deepEqual(texts, keys.map(({ key, value }) => [key, value]));
    assert.ok(readBytes < FOOTER_READ_BYTES + 10_000, `${readBytes} bytes read`);
  }
});

test("readFooterLayout() reads on where the beginning is longer than the first read", async () => {
  const bytes = await parquetFile([{ key: "a", value: "x" }], 2000);
  const { texts, head } = await readLayout(bytes);
  assert.deepEqual(texts, [["a", "x"]]);
  assert.ok(head!.length > FOOTER_READ_BYTES);
});

test("readFooterLayout() refuses keys that are there twice, and more than there may be", async () => {
  const twice = [{ key: "a", value: "1" }, { key: "a", value: "2" }];
  await assert.rejects(readLayout(await parquetFile(twice)), /a is there twice/);
  const many = Array.from({ length: 9 }, (_, n) => ({ key: `${n}`, value: "" }));
  await assert.rejects(readLayout(await parquetFile(many)), SegmentError);
});

test(`readFooterLayout() refuses or reads what is damaged (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const keys = [{ key: "a", value: "x".repeat(500) }, { key: "b", value: "y" }];
  const bytes = await parquetFile(keys);
  for (let run = 0; run < 400; run++) {
    const copy = Buffer.from(bytes.subarray(0, bytes.length - random.pick([0, 0, 0, 1, 9])));
    const from = random.below(copy.length);
    for (let count = random.below(4); count > 0; count--) {
      const at = from + random.below(Math.min(40, copy.length - from));
      copy[at] = random.pick([0, 0x18, 0x7f, 0x80, 0xff, random.below(256)]);
    }
    try {
      await readLayout(copy);
    } catch (error) {
      assert.ok(error instanceof SegmentError, String(error));
    }
  }
});
