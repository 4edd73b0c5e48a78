import assert from "node:assert/strict";
import { test } from "node:test";
import { freeOwnMemory } from "../src/free_memory.ts";

test("freeOwnMemory() frees a buffer that its view covers entirely, and leaves shared memory alone", () => {
  const memory = new ArrayBuffer(1024);
  for (const [start, size] of [[0, 1023], [1, 1023], [8, 0]] as const) {
    freeOwnMemory(new Uint8Array(memory, start, size));
    assert.equal(memory.byteLength, 1024);
  }
  const bytes = new Uint8Array(memory);
  freeOwnMemory(new Float64Array(memory));
  assert.deepEqual([memory.byteLength, bytes.length], [0, 0]);
  freeOwnMemory(bytes);
  const shared = new SharedArrayBuffer(1024);
  freeOwnMemory(new Uint8Array(shared));
  assert.equal(shared.byteLength, 1024);
});
