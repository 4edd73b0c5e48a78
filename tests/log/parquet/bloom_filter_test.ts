import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  buildBloomFilter,
  decodeBloomFilter,
  encodeBloomFilter,
  mayContain,
} from "../../../src/log/parquet/bloom_filter.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import { xxhash64, xxhash64Loaded } from "../../../src/log/parquet/xxhash64.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { flipBit } from "../../support/corrupt.ts";

await xxhash64Loaded;

function values(count: number, prefix: string): Buffer[] {
  return Array.from({ length: count }, (_, number) => Buffer.from(`${prefix}-${number}`));
}

test(`mayContain() has no false negatives (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let run = 0; run < 30; run++) {
    const texts = Array.from({ length: 1 + random.below(500) }, () => Buffer.from(random.text(40)));
    const filter = buildBloomFilter(texts, random.pick([0.1, 1e-3, 1e-4]));
    for (const text of texts) assert.ok(mayContain(filter, xxhash64(text)));
  }
});

test("mayContain() stays within the requested false-positive rate", () => {
  for (const falseShare of [1e-2, 1e-3]) {
    const filter = buildBloomFilter(values(4096, "in"), falseShare);
    const others = values(20_000, "out").filter((value) => mayContain(filter, xxhash64(value)));
    assert.ok(others.length <= 20_000 * falseShare * 1.5, `${others.length} of 20000`);
  }
});

test("buildBloomFilter() sizes the filter for the number of distinct values", () => {
  const repeated = Array.from({ length: 4096 }, () => Buffer.from("same"));
  assert.equal(buildBloomFilter(repeated, 1e-4).byteLength, 32);
  assert.equal(buildBloomFilter(values(4096, "key"), 1e-4).byteLength, 16 * 1024);
});

test("decodeBloomFilter() restores what encodeBloomFilter() wrote, and rejects anything else", () => {
  const filter = buildBloomFilter(values(10, "in"), 1e-3);
  const bytes = encodeBloomFilter(filter);
  assert.deepEqual(decodeBloomFilter(bytes), filter);
  assert.throws(() => decodeBloomFilter(bytes.subarray(0, -1)), SegmentError);
  assert.throws(() => decodeBloomFilter(Buffer.concat([bytes, bytes])), SegmentError);
  assert.throws(() => decodeBloomFilter(Buffer.alloc(0)), SegmentError);
});

test("decodeBloomFilter() rejects a filter with any bit flipped", () => {
  const bytes = encodeBloomFilter(buildBloomFilter(values(10, "in"), 1e-3));
  for (let bit = 0; bit < 8 * bytes.length; bit++) {
    assert.throws(() => decodeBloomFilter(flipBit(bytes, bit)), SegmentError, `bit ${bit}`);
  }
});
