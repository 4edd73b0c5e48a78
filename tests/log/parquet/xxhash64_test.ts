import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { xxhash64 } from "../../../src/log/parquet/xxhash64.ts";

function hex(bytes: Uint8Array): string {
  const { high, low } = xxhash64(bytes);
  return [high, low].map((half) => half.toString(16).padStart(8, "0")).join("");
}

/** The bytes that xxHash checks itself with (Cyan4973/xxHash, xsum_sanity_check.c). */
function sanityBytes(length: number): Buffer {
  let state = 2654435761n;
  return Buffer.from(Array.from({ length }, () => {
    const byte = Number(state >> 56n);
    state = BigInt.asUintN(64, state * 11400714785074694797n);
    return byte;
  }));
}

test("xxhash64() gives the published values", () => {
  assert.equal(hex(Buffer.from("a")), "d24ec4f1a98c6e5b");
  assert.equal(hex(Buffer.from("abc")), "44bc2cf5ad770999");
  // With all that a length can bring: stripes, lanes, four bytes, single ones.
  assert.equal(hex(sanityBytes(0)), "ef46db3751d8e999");
  assert.equal(hex(sanityBytes(1)), "e934a84adb052768");
  assert.equal(hex(sanityBytes(4)), "9136a0dca57457ee");
  assert.equal(hex(sanityBytes(14)), "8282dcc4994e35c8");
  assert.equal(hex(sanityBytes(222)), "b641ae8cb691c174");
});

test("xxhash64() takes a view of other bytes", () => {
  const bytes = sanityBytes(300);
  assert.equal(hex(bytes.subarray(7, 260)), hex(Buffer.from(bytes.subarray(7, 260))));
});
