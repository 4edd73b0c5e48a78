import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { READ_CHUNK_BYTES } from "../../../src/limits.ts";
import {
  CHUNK_MEMORY_BYTES,
  ChunkMemory,
  CHUNKS_KEPT_MAX,
} from "../../../src/log/read/chunk_memory.ts";

test("ChunkMemory.take() gives memory that came back, also as a part, to one reader at a time", () => {
  const memory = new ChunkMemory();
  const first = memory.take(READ_CHUNK_BYTES);
  const second = memory.take(READ_CHUNK_BYTES / 2);
  assert.notEqual(second.buffer, first.buffer);
  first.fill("first");
  memory.give(first.subarray(10, 20));
  memory.give(first);
  assert.equal(memory.heldCount, 1);
  const third = memory.take(READ_CHUNK_BYTES - 1);
  assert.equal(third.toString("latin1", 0, 5), "first");
  assert.equal(third.length, READ_CHUNK_BYTES - 1);
  assert.equal(memory.heldCount, 0);
  assert.notEqual(memory.take(READ_CHUNK_BYTES).buffer, third.buffer);
});

test("ChunkMemory.give() leaves nothing to see for those who still hold what was given", () => {
  const memory = new ChunkMemory();
  const chunk = memory.take(READ_CHUNK_BYTES);
  const part = chunk.subarray(1, 3);
  memory.share(chunk, 1);
  memory.give(chunk);
  assert.deepEqual([chunk.length, part.length], [READ_CHUNK_BYTES, 2]);
  memory.give(part);
  assert.deepEqual([chunk.length, part.length], [0, 0]);
});

test("ChunkMemory.give() leaves alone what is from elsewhere, small, or large", () => {
  const memory = new ChunkMemory();
  memory.give(Buffer.allocUnsafeSlow(READ_CHUNK_BYTES));
  memory.give(memory.take(100));
  memory.give(memory.take(CHUNK_MEMORY_BYTES + 1));
  assert.equal(memory.heldCount, 0);
});

test("ChunkMemory.share() keeps memory from others until each who has it gave it back", () => {
  const memory = new ChunkMemory();
  const chunk = memory.take(READ_CHUNK_BYTES);
  memory.share(chunk.subarray(1), 2);
  for (const heldCount of [0, 0, 1]) {
    memory.give(chunk);
    assert.equal(memory.heldCount, heldCount);
  }
  memory.share(chunk, 1);
  memory.give(chunk);
  memory.give(chunk);
  assert.equal(memory.heldCount, 1, "it is nobody's to give");
});

test("ChunkMemory holds no more chunks than its limit", () => {
  const memory = new ChunkMemory();
  const chunks = Array.from({ length: CHUNKS_KEPT_MAX + 3 }, () => memory.take(READ_CHUNK_BYTES));
  for (const chunk of chunks) memory.give(chunk);
  assert.equal(memory.heldCount, CHUNKS_KEPT_MAX);
});

test("ChunkMemory.concat() copies the bytes of all parts, in order", () => {
  const memory = new ChunkMemory();
  const parts = ["ab", "", "c".repeat(READ_CHUNK_BYTES), "d"].map((text) => Buffer.from(text));
  assert.deepEqual(memory.concat(parts), Buffer.concat(parts));
  assert.equal(memory.concat([]).length, 0);
});

test("ChunkMemory.copy() copies all bytes", () => {
  const memory = new ChunkMemory();
  const bytes = Buffer.alloc(READ_CHUNK_BYTES, "abc");
  const copy = memory.copy(bytes);
  assert.deepEqual(copy, bytes);
  assert.notEqual(copy.buffer, bytes.buffer);
});
