import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { xxhash64 as reference } from "hyparquet/src/xxhash.js";
import { xxhash64 } from "../../../src/log/parquet/xxhash64.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

function hex(bytes: Uint8Array): string {
  const { high, low } = xxhash64(bytes);
  return [high, low].map((half) => half.toString(16).padStart(8, "0")).join("");
}

test("xxhash64() gives the published values", () => {
  assert.equal(hex(Buffer.from("")), "ef46db3751d8e999");
  assert.equal(hex(Buffer.from("a")), "d24ec4f1a98c6e5b");
  assert.equal(hex(Buffer.from("abc")), "44bc2cf5ad770999");
});

test(`xxhash64() gives what another implementation gives, at every length (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let length = 0; length < 300; length++) {
    const bytes = Buffer.alloc(length);
    random.bytes(bytes);
    assert.equal(hex(bytes), reference(bytes).toString(16).padStart(16, "0"), `${length} bytes`);
  }
});
