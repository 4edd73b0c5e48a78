import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { xxhash64, xxhash64Loaded } from "../../../src/log/parquet/xxhash64.ts";

await xxhash64Loaded;

test("xxhash64() returns the published test vectors as two 32-bit halves", () => {
  assert.deepEqual(xxhash64(Buffer.alloc(0)), { high: 0xef46db37, low: 0x51d8e999 });
  assert.deepEqual(xxhash64(Buffer.from("a")), { high: 0xd24ec4f1, low: 0xa98c6e5b });
  const view = Buffer.from("-abc-").subarray(1, 4);
  assert.deepEqual(xxhash64(view), { high: 0x44bc2cf5, low: 0xad770999 });
});
