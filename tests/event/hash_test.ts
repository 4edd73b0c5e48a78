import assert from "node:assert/strict";
import { test } from "node:test";
import { isSha256Hex, sha256Hex, Sha256Stream } from "../../src/event/hash.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";

test(`Sha256Stream hashes what comes in blocks as one text (seed ${SEED})`, () => {
  const random = new SeededRandom();
  const stream = new Sha256Stream();
  for (const blocks of [0, 1, 2, 0, 7]) {
    const texts = Array.from({ length: blocks + 1 }, () => random.text(5000));
    for (const text of texts.slice(0, -1)) stream.update(new TextEncoder().encode(text));
    const hash = stream.end(new TextEncoder().encode(texts.at(-1)!));
    assert.equal(hash, sha256Hex(texts.join("")), `seed ${SEED}`);
  }
});

test("isSha256Hex() takes 64 lowercase hex digits", () => {
  const digits = "0123456789abcdef".repeat(4);
  assert.ok(isSha256Hex(digits));
  const others = [digits.slice(1), digits + "0", digits.toUpperCase(), digits + "\n", 7, null, [
    digits,
  ]];
  for (const other of others) assert.ok(!isSha256Hex(other), JSON.stringify(other));
});
