import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { BLOCK_TEXT_BYTES, BlockText } from "../../src/event/block_text.ts";
import { ByteWriter } from "../../src/event/byte_writer.ts";

const PIECE = Buffer.from("0123456789abcdef");

/** Puts PIECE into a text so many times; returns what was taken away, and the rest. */
function written(times: number, writer: ByteWriter): { taken: Buffer[]; rest: Buffer } {
  const taken: Buffer[] = [];
  const text = new BlockText(writer, (block, at) => {
    assert.equal(at, taken.reduce((bytes, { length }) => bytes + length, 0));
    taken.push(Buffer.from(block));
  });
  for (let time = 0; time < times; time++) {
    text.reserve(PIECE.length);
    writer.append(PIECE);
    assert.equal(text.sizeBytes, (time + 1) * PIECE.length);
  }
  return { taken, rest: Buffer.from(text.rest()) };
}

test("BlockText takes a long text away by blocks and leaves the memory as it was", () => {
  const writer = new ByteWriter(64);
  writer.append(Buffer.from("before"));
  const times = 3 * BLOCK_TEXT_BYTES / PIECE.length + 7;
  const { taken, rest } = written(times, writer);
  assert.equal(taken.length, 3);
  assert.equal(Buffer.concat([...taken, rest]).toString(), PIECE.toString().repeat(times));
  assert.equal(writer.bytes.toString("latin1", 0, writer.size), "before");
  assert.ok(writer.bytes.length < 2 * BLOCK_TEXT_BYTES, "memory of one block is enough");
});

test("BlockText takes nothing away of a text that is shorter than a block", () => {
  const { taken, rest } = written(5, new ByteWriter(64));
  assert.deepEqual(taken, []);
  assert.equal(rest.toString(), PIECE.toString().repeat(5));
});
