import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { hash } from "node:crypto";
import { test } from "node:test";
import { HASH_WORDS, hashLink } from "../../src/event/sha256_link.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";

const LINK_BYTES = 64;
const LINKS = 500;

function hashOf(bytes: Buffer): string {
  const link = Int32Array.from(
    { length: LINK_BYTES / 4 },
    (_, word) => bytes.readInt32BE(4 * word),
  );
  hashLink(link);
  const hashed = Buffer.alloc(4 * HASH_WORDS);
  for (let word = 0; word < HASH_WORDS; word++) hashed.writeInt32BE(link[word]!, 4 * word);
  return hashed.toString("hex");
}

test("hashLink() hashes 64 bytes that are all alike", () => {
  for (const byte of [0x00, 0x7f, 0x80, 0xff]) {
    const bytes = Buffer.alloc(LINK_BYTES, byte);
    assert.equal(hashOf(bytes), hash("sha256", bytes, "hex"), `${byte}`);
  }
});

test("hashLink() leaves the event hash in its place", () => {
  const link = new Int32Array(2 * HASH_WORDS).map((_, word) => word);
  hashLink(link);
  assert.deepEqual([...link.subarray(HASH_WORDS)], [8, 9, 10, 11, 12, 13, 14, 15]);
});

test(`hashLink() agrees with node:crypto (seed ${SEED})`, () => {
  const random = new SeededRandom(SEED);
  for (let round = 0; round < LINKS; round++) {
    const bytes = Buffer.from(Array.from({ length: LINK_BYTES }, () => random.below(256)));
    assert.equal(hashOf(bytes), hash("sha256", bytes, "hex"), `seed ${SEED}, round ${round}`);
  }
});
