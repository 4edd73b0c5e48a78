import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { parquetMetadata } from "hyparquet";
import {
  type ColumnMetadata,
  decodeFileMetadata,
  decodeKeyValues,
  encodeFileMetadata,
  type FileMetadata,
  type SchemaElement,
} from "../../../src/log/parquet/file_metadata.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import { SEED, SeededRandom } from "../../event/support/seeded_random.ts";

const SCHEMA: SchemaElement[] = [
  { name: "id", type: "FIXED_LEN_BYTE_ARRAY", type_length: 2, repetition_type: "REQUIRED" },
  { name: "text", type: "BYTE_ARRAY", repetition_type: "OPTIONAL", logical_type: "STRING" },
];

const PLAIN: ColumnMetadata = {
  start: 4,
  end: 104,
  dataStart: 4,
  uncompressedBytes: 2 ** 40,
  statistics: { min: Buffer.from("aa"), max: Buffer.from("zz"), nulls: 0 },
  bloomFilter: { start: 300, end: 350 },
  columnIndex: { start: 400, end: 450 },
  offsetIndex: { start: 500, end: 550 },
};
const INDEXED: ColumnMetadata = {
  ...PLAIN,
  start: 104,
  end: 200,
  dataStart: 150,
  statistics: { min: null, max: null, nulls: 3 },
  bloomFilter: null,
  columnIndex: null,
  offsetIndex: null,
};

const FILE: FileMetadata = {
  schema: SCHEMA,
  rowGroups: [{ rows: 3, columns: [PLAIN, INDEXED] }, {
    rows: 1000,
    columns: [PLAIN, { ...INDEXED, statistics: null }],
  }],
  keyValues: { facts: '{"é":1}', more: "" },
  createdBy: "a test",
};

test("decodeFileMetadata() gives back what encodeFileMetadata() wrote", () => {
  const bytes = encodeFileMetadata(FILE);
  assert.deepEqual(decodeFileMetadata(bytes, SCHEMA), FILE);
  assert.deepEqual(decodeKeyValues(bytes), FILE.keyValues);
});

test("encodeFileMetadata() writes what another implementation reads", () => {
  const footer = encodeFileMetadata(FILE);
  const bytes = Buffer.concat([footer, Buffer.alloc(4), Buffer.from("PAR1")]);
  bytes.writeUInt32LE(footer.length, footer.length);
  const read = parquetMetadata(Uint8Array.from(bytes).buffer);
  assert.deepEqual([read.version, read.num_rows, read.created_by], [2, 1003n, "a test"]);
  assert.deepEqual(
    read.schema.slice(1).map(({ name, type, repetition_type }) => ({
      ...{ name, type, repetition_type },
    })),
    SCHEMA.map(({ name, type, repetition_type }) => ({ name, type, repetition_type })),
  );
  const [first, second] = read.row_groups[0]!.columns.map((column) => column.meta_data!);
  assert.deepEqual(
    [first!.total_compressed_size, first!.total_uncompressed_size, first!.bloom_filter_length],
    [100n, BigInt(2 ** 40), 50],
  );
  assert.deepEqual([first!.codec, first!.encodings], ["SNAPPY", ["PLAIN"]]);
  assert.deepEqual([second!.dictionary_page_offset, second!.data_page_offset], [104n, 150n]);
  assert.deepEqual(second!.encodings, ["PLAIN", "RLE_DICTIONARY"]);
  assert.equal(second!.statistics!.null_count, 3n);
});

test("decodeFileMetadata() refuses other columns, counts and sizes", () => {
  const [id, text] = SCHEMA as [SchemaElement, SchemaElement];
  const others: Record<string, SchemaElement[]> = {
    "another order": [text, id],
    "a column more": [id, text, id],
    "another name": [id, { ...text, name: "texts" }],
    "another type": [{ ...id, type_length: 3 }, text],
    "a required column": [id, { ...text, repetition_type: "REQUIRED" }],
    "another meaning": [id, { ...text, logical_type: "UUID" }],
  };
  for (const [name, schema] of Object.entries(others)) {
    const bytes = encodeFileMetadata({ ...FILE, schema });
    assert.throws(() => decodeFileMetadata(bytes, SCHEMA), SegmentError, name);
  }
  const [first, ...rest] = FILE.rowGroups;
  const wrong: Record<string, FileMetadata["rowGroups"]> = {
    "a column less": [{ ...first!, columns: [PLAIN] }, ...rest],
    "negative rows": [{ ...first!, rows: -3 }],
    "a negative size": [{ ...first!, columns: [{ ...PLAIN, uncompressedBytes: -1 }, INDEXED] }],
    "an end before the start": [{ ...first!, columns: [{ ...PLAIN, end: 3 }, INDEXED] }],
  };
  for (const [name, rowGroups] of Object.entries(wrong)) {
    const bytes = encodeFileMetadata({ ...FILE, rowGroups });
    assert.throws(() => decodeFileMetadata(bytes, SCHEMA), SegmentError, name);
  }
  const bytes = encodeFileMetadata(FILE);
  const longer = Buffer.concat([bytes, Buffer.alloc(1)]);
  assert.throws(() => decodeFileMetadata(longer, SCHEMA), SegmentError);
  assert.throws(() => decodeKeyValues(longer), SegmentError);
});

test(`decodeFileMetadata() reads or refuses any bytes (seed ${SEED})`, () => {
  const random = new SeededRandom();
  const bytes = encodeFileMetadata(FILE);
  for (let run = 0; run < 10_000; run++) {
    const changed = Buffer.from(bytes);
    for (let flips = 1 + random.below(3); flips > 0; flips--) {
      changed[random.below(bytes.length)]! ^= 1 << random.below(8);
    }
    for (
      const decode of [() => decodeFileMetadata(changed, SCHEMA), () => decodeKeyValues(changed)]
    ) {
      try {
        decode();
      } catch (error) {
        assert.ok(error instanceof SegmentError, String(error));
      }
    }
  }
});
