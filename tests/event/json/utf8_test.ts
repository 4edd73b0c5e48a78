import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8Bytes, validUtf8Bytes } from "../../../src/event/json/utf8.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

const HOSTILE = [0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed]
  .concat([0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff]);

test("validUtf8Bytes() agrees with TextDecoder on every sequence of boundary bytes", () => {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const isValid = (bytes: Uint8Array) => {
    try {
      return decoder.decode(bytes) !== undefined;
    } catch {
      return false;
    }
  };
  for (const first of HOSTILE) {
    for (const second of HOSTILE) {
      for (const third of HOSTILE) {
        for (
          const bytes of [[first, second, third], [first, second, third, 0x80], [first, second]]
        ) {
          const sequence = Uint8Array.from(bytes);
          const validBytes = validUtf8Bytes(sequence);
          assert.equal(validBytes === sequence.length, isValid(sequence), bytes.join());
          assert.ok(isValid(sequence.subarray(0, validBytes)), bytes.join());
        }
      }
    }
  }
});

test(`utf8Bytes() agrees with TextEncoder (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let round = 0; round < 500; round++) {
    const text = random.text(30);
    assert.equal(utf8Bytes(text), new TextEncoder().encode(text).length, `seed ${SEED}`);
  }
});
