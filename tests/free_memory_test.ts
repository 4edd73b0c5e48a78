import assert from "node:assert/strict";
import { test } from "node:test";
import { freeMemory, freeOwnMemory } from "../src/free_memory.ts";

test("freeMemory() leaves nothing of the memory, and shared memory alone", () => {
  const memory = new ArrayBuffer(1024);
  const bytes = new Uint8Array(memory, 10, 100);
  freeMemory(memory);
  assert.equal(memory.byteLength, 0);
  assert.equal(bytes.length, 0);
  freeMemory(memory);
  const shared = new SharedArrayBuffer(1024);
  freeMemory(shared);
  assert.equal(shared.byteLength, 1024);
});

test("freeOwnMemory() leaves memory alone that others may be in", () => {
  const memory = new ArrayBuffer(1024);
  for (const [start, size] of [[0, 1023], [1, 1023], [8, 0]] as const) {
    freeOwnMemory(new Uint8Array(memory, start, size));
    assert.equal(memory.byteLength, 1024);
  }
  freeOwnMemory(new Float64Array(memory));
  assert.equal(memory.byteLength, 0);
});
