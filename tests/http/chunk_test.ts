import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { chunkOf } from "../../src/http/chunk.ts";

const PIECES: [string, string][] = [
  ["a", "1\r\na\r\n"],
  ["0123456789abcdef", "10\r\n0123456789abcdef\r\n"],
  ["\r\n", "2\r\n\r\n\r\n"],
  ["ä", "2\r\nä\r\n"],
];

test("chunkOf() frames a piece with its hexadecimal length in bytes", () => {
  for (const [piece, chunk] of PIECES) {
    assert.equal(chunkOf(Buffer.from(piece)).toString(), chunk);
  }
});

test("chunkOf() distinguishes pieces of equal length, and caches the last one", () => {
  const [first, second] = [Buffer.from("first1"), Buffer.from("second")];
  for (const piece of [first, second, second, first]) {
    assert.equal(chunkOf(piece).toString(), `6\r\n${piece}\r\n`);
  }
});
