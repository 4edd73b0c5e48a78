import assert from "node:assert/strict";
import { test } from "node:test";
import { READ_CHUNK_BYTES } from "../../../src/limits.ts";
import { ScanMemory } from "../../../src/log/read/scan_memory.ts";

test("ScanMemory.take() reuses its own buffers and those of finished scans", () => {
  const first = new ScanMemory();
  const { buffer } = first.take(READ_CHUNK_BYTES);
  assert.equal(first.take(1000).buffer, buffer);
  assert.equal(first.take(READ_CHUNK_BYTES).length, READ_CHUNK_BYTES);
  const other = new ScanMemory();
  assert.notEqual(other.take(READ_CHUNK_BYTES).buffer, buffer, "the buffer is in use by a scan");
  first.release();
  first.release();
  const next = new ScanMemory();
  assert.equal(next.take(READ_CHUNK_BYTES - 1).buffer, buffer);
  assert.notEqual(first.take(READ_CHUNK_BYTES).buffer, buffer, "the buffer was released only once");
});
