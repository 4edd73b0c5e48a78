import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { eventLineEnd, hasPieceAt, pieceOf } from "../../../src/log/line/line_bytes.ts";
import { EVENT_BYTES_MIN } from "../../../src/limits.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

test("hasPieceAt() matches bytes of any length only at their offset", () => {
  const bytes = Buffer.from("abcdefghijkl");
  for (let sizeBytes = 0; sizeBytes <= bytes.length; sizeBytes++) {
    for (let start = 0; start + sizeBytes <= bytes.length; start++) {
      const piece = pieceOf(bytes.subarray(start, start + sizeBytes));
      for (let at = 0; at <= bytes.length; at++) {
        const isThere = sizeBytes === 0 || at === start;
        assert.equal(hasPieceAt(bytes, at, piece), isThere, `${sizeBytes} from ${start} at ${at}`);
      }
    }
  }
  assert.ok(
    !hasPieceAt(bytes, 9, pieceOf(Buffer.from("jklm"))),
    "the piece would extend past the end",
  );
});

test(`eventLineEnd() finds the LF of an event at any offset (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let run = 0; run < 500; run++) {
    const lengths = Array.from({ length: 3 }, () => EVENT_BYTES_MIN + random.below(40));
    const lines = lengths.map((length) => {
      const line = Buffer.from(Array.from({ length }, () => random.pick([0x09, 0x0b, 0x8a, 0xff])));
      line[length - 1] = 0x0a;
      return line;
    });
    const { buffer, byteOffset, length } = Buffer.concat(lines);
    const view = new DataView(buffer, byteOffset, length);
    let start = 0;
    for (const line of lengths) {
      assert.equal(eventLineEnd(view, start), start + line);
      start += line;
    }
  }
});

test("eventLineEnd() never reads past the end of the buffer", () => {
  for (const length of [1, 8, EVENT_BYTES_MIN, EVENT_BYTES_MIN + 9]) {
    assert.equal(eventLineEnd(new DataView(new ArrayBuffer(length)), 0), length);
  }
});
