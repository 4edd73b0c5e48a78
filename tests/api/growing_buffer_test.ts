import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { BufferPool } from "../../src/event/buffer_pool.ts";
import { BODY_SLAB_BYTES, GrowingBuffer } from "../../src/api/growing_buffer.ts";

const SIZES: Array<[title: string, sizes: number[]]> = [
  ["nothing", []],
  ["empty pieces", [0, 0]],
  ["small pieces", [1, 0, 2, 3]],
  ["exactly one slab", [BODY_SLAB_BYTES]],
  ["exactly one slab in two pieces", [1, BODY_SLAB_BYTES - 1]],
  ["pieces over the edge of a slab", [BODY_SLAB_BYTES - 1, 2, BODY_SLAB_BYTES]],
  ["a piece of several slabs", [5, 3 * BODY_SLAB_BYTES + 7, 5]],
];

for (const [title, sizes] of SIZES) {
  test(`GrowingBuffer holds ${title}`, () => {
    const buffer = new GrowingBuffer();
    const pieces = sizes.map((size, index) => Buffer.alloc(size, 65 + index));
    for (const piece of pieces) buffer.append(piece);
    assert.equal(buffer.sizeBytes, Buffer.concat(pieces).length);
    assert.ok(buffer.toBytes(new BufferPool()).equals(Buffer.concat(pieces)));
  });
}

test("GrowingBuffer keeps its bytes when a piece is changed afterwards", () => {
  const buffer = new GrowingBuffer();
  const piece = Buffer.from("abc");
  buffer.append(piece);
  piece.fill(0);
  assert.equal(buffer.toBytes(new BufferPool()).toString(), "abc");
});
