import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { sbbfContains } from "hyparquet/src/bloom.js";
import { xxhash64 as reference } from "hyparquet/src/xxhash.js";
import { ByteWriter } from "hyparquet-writer";
import { writeBloomFilter } from "hyparquet-writer/src/bloom.js";
import {
  bloomFilterBytes,
  buildBloomFilter,
  decodeBloomFilter,
  mayContain,
} from "../../../src/log/parquet/bloom_filter.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import { xxhash64 } from "../../../src/log/parquet/xxhash64.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

function values(count: number, prefix: string): Buffer[] {
  return Array.from({ length: count }, (_, number) => Buffer.from(`${prefix}-${number}`));
}

test(`mayContain() is never false for a value of the filter (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let run = 0; run < 30; run++) {
    const texts = Array.from({ length: 1 + random.below(500) }, () => Buffer.from(random.text(40)));
    const filter = buildBloomFilter(texts, random.pick([0.1, 1e-3, 1e-4]));
    for (const text of texts) assert.ok(mayContain(filter, xxhash64(text)));
  }
});

test("mayContain() is true by mistake for no more than the share asked for", () => {
  for (const falseShare of [1e-2, 1e-3]) {
    const filter = buildBloomFilter(values(4096, "in"), falseShare);
    const others = values(20_000, "out").filter((value) => mayContain(filter, xxhash64(value)));
    assert.ok(others.length <= 20_000 * falseShare * 1.5, `${others.length} of 20000`);
  }
});

test("mayContain() agrees with another implementation of the format", () => {
  const filter = buildBloomFilter(values(100, "in"), 0.1);
  for (const value of [...values(100, "in"), ...values(2000, "out")]) {
    assert.equal(mayContain(filter, xxhash64(value)), sbbfContains(filter, reference(value)));
  }
});

test("buildBloomFilter() is as large as the distinct values need", () => {
  const repeated = Array.from({ length: 4096 }, () => Buffer.from("same"));
  assert.equal(buildBloomFilter(repeated, 1e-4).byteLength, 32);
  assert.equal(buildBloomFilter(values(4096, "key"), 1e-4).byteLength, 16 * 1024);
});

test("bloomFilterBytes() tells the filter from its header, whatever its size", () => {
  for (const count of [1, 2, 10, 100, 1000, 4096]) {
    const filter = buildBloomFilter(values(count, "in"), 1e-4);
    const writer = new ByteWriter();
    writeBloomFilter(writer, filter);
    assert.equal(bloomFilterBytes(writer.getBytes().length), filter.byteLength);
  }
});

test("decodeBloomFilter() gives back a filter that was written, and refuses any other", () => {
  const filter = buildBloomFilter(values(10, "in"), 1e-3);
  const writer = new ByteWriter();
  writeBloomFilter(writer, filter);
  const bytes = Buffer.from(writer.getBytes());
  assert.deepEqual(decodeBloomFilter(bytes), filter);
  assert.throws(() => decodeBloomFilter(bytes.subarray(0, -1)), SegmentError);
  assert.throws(() => decodeBloomFilter(Buffer.concat([bytes, bytes])), SegmentError);
  assert.throws(() => decodeBloomFilter(Buffer.alloc(0)), SegmentError);
});
