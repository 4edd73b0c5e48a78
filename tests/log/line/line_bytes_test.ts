import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { hasPieceAt, pieceOf, viewFor } from "../../../src/log/line/line_bytes.ts";

test("hasPieceAt() matches bytes of any length only at their offset", () => {
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
  assert.ok(
    !hasPieceAt(view, 9, pieceOf(Buffer.from("jklm"))),
    "the piece would extend past the end",
  );
});
