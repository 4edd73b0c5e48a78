import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  areHexDigits,
  hasPieceAt,
  isUuidAt,
  pieceOf,
  viewFor,
} from "../../../src/log/line/line_bytes.ts";

test("areHexDigits() takes lowercase digits, and no other byte at any place", () => {
  const bytes = Buffer.from(" 0123456789abcdef ");
  const view = viewFor(bytes);
  assert.ok(areHexDigits(view, 1, 16));
  assert.ok(areHexDigits(view, 3, 0));
  assert.ok(!areHexDigits(view, 0, 16));
  assert.ok(!areHexDigits(view, 2, 16));
  assert.ok(!areHexDigits(view, 3, 16), "they end before");
  for (let at = 1; at < 17; at++) {
    const was = bytes[at]!;
    for (let byte = 0; byte < 0x100; byte++) {
      bytes[at] = byte;
      const isDigit = byte < 0x80 && /[0-9a-f]/.test(String.fromCharCode(byte));
      assert.equal(areHexDigits(view, 1, 16), isDigit, `byte ${at} is ${byte}`);
    }
    bytes[at] = was;
  }
});

test("isUuidAt() takes 36 characters in lowercase", () => {
  const uuid = "01a2037c-84c2-77f7-ab1a-5daafebe26ae";
  const isUuid = (text: string, at = 0) => isUuidAt(viewFor(Buffer.from(text)), at);
  assert.ok(isUuid(uuid));
  assert.ok(isUuid(`"${uuid}"`, 1));
  assert.ok(!isUuid(`"${uuid}"`));
  assert.ok(!isUuid(uuid.slice(1)));
  for (let at = 0; at < uuid.length; at++) {
    for (const other of ["A", "g", "_", " "]) {
      assert.ok(!isUuid(uuid.slice(0, at) + other + uuid.slice(at + 1)), `${at}: ${other}`);
    }
  }
});

test("hasPieceAt() finds a piece of any length where it is, and nowhere else", () => {
  const bytes = Buffer.from("abcdefghijkl");
  const view = viewFor(bytes);
  for (let sizeBytes = 0; sizeBytes <= bytes.length; sizeBytes++) {
    for (let start = 0; start + sizeBytes <= bytes.length; start++) {
      const piece = pieceOf(bytes.subarray(start, start + sizeBytes));
      for (let at = 0; at <= bytes.length; at++) {
        const isThere = sizeBytes === 0 || at === start;
        assert.equal(hasPieceAt(view, at, piece), isThere, `${sizeBytes} from ${start} at ${at}`);
      }
    }
  }
  assert.ok(!hasPieceAt(view, 9, pieceOf(Buffer.from("jklm"))), "it goes on behind the end");
});
