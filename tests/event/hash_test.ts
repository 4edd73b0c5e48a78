import assert from "node:assert/strict";
import { test } from "node:test";
import { isSha256Hex, sha256Hex } from "../../src/event/hash.ts";

const VECTORS: [text: string, hashHex: string][] = [
  ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
  ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
  ["\u00e9\u{1f600}", "1184d1f608158eea09d297565575892231550c403aaa913008d867a97cfd5c76"],
];

test("sha256Hex() matches known hashes of strings and bytes", () => {
  for (const [text, hashHex] of VECTORS) {
    const bytes = new TextEncoder().encode(text);
    assert.equal(sha256Hex(text), hashHex);
    assert.equal(sha256Hex(bytes), hashHex);
  }
});

test("isSha256Hex() accepts only 64 lowercase hex digits", () => {
  const digits = "0123456789abcdef".repeat(4);
  assert.ok(isSha256Hex(digits));
  const others = [digits.slice(1), digits + "0", digits.toUpperCase(), digits + "\n", 7, null, [
    digits,
  ]];
  for (const other of others) assert.ok(!isSha256Hex(other), JSON.stringify(other));
});
