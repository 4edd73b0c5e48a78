import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { isSha256Hex, sha256Hex, Sha256Stream } from "../../src/event/hash.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";

const VECTORS: [text: string, hashHex: string][] = [
  ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
  ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
  ["\u00e9\u{1f600}", "1184d1f608158eea09d297565575892231550c403aaa913008d867a97cfd5c76"],
];

test("sha256Hex() hashes known texts, as text and as bytes", () => {
  for (const [text, hashHex] of VECTORS) {
    const bytes = new TextEncoder().encode(text);
    assert.equal(sha256Hex(text), hashHex);
    assert.equal(sha256Hex(bytes), hashHex);
  }
});

test(`sha256Hex() agrees with WebCrypto (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  for (let round = 0; round < 200; round++) {
    const text = random.text(200);
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
    assert.equal(sha256Hex(text), Buffer.from(digest).toString("hex"), `seed ${SEED}`);
  }
});

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
