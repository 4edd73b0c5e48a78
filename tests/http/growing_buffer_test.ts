import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { GrowingBuffer } from "../../src/http/growing_buffer.ts";

test("GrowingBuffer holds what was appended, beyond its capacity too", () => {
  const buffer = new GrowingBuffer(4);
  for (const piece of ["ab", "", "cde", "fghijklmnop"]) buffer.append(Buffer.from(piece));
  assert.equal(buffer.sizeBytes, 16);
  assert.equal(buffer.take().toString(), "abcdefghijklmnop");
});

test("GrowingBuffer keeps its bytes when a piece is changed afterwards", () => {
  const buffer = new GrowingBuffer(1);
  const piece = Buffer.from("abc");
  buffer.append(piece);
  piece.fill(0);
  assert.equal(buffer.take().toString(), "abc");
});

test("GrowingBuffer can start without capacity", () => {
  const buffer = new GrowingBuffer(0);
  assert.equal(buffer.take().length, 0);
  buffer.append(Buffer.from("a"));
  assert.equal(buffer.take().toString(), "a");
});
