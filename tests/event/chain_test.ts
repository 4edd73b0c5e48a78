import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { AssertionError } from "../../src/assert.ts";
import { HistoryChain } from "../../src/event/chain.ts";
import { sha256Hex } from "../../src/event/hash.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";
import { EVENT_HASHES, HEADS } from "./support/worked_example.ts";

// Computed with Python's hashlib, like the hashes in the worked example.
const GENESIS = "d7c2b88a9b41e38db5299fc03223d2ea3edced2c3d430bfb648770af0ca2ab09";

test("HistoryChain continues from a given head", () => {
  const chain = new HistoryChain(HEADS[0]);
  chain.append(EVENT_HASHES[1]!);
  assert.equal(chain.head, HEADS[1]);
});

test(`HistoryChain.append() agrees with node:crypto (seed ${SEED})`, () => {
  const random = new SeededRandom(SEED);
  const chain = new HistoryChain("f".repeat(64));
  let head = chain.head;
  for (let link = 0; link < 1000; link++) {
    const eventHash = link === 0 ? "0".repeat(64) : sha256Hex(String(random.below(2 ** 31)));
    chain.append(eventHash);
    head = sha256Hex(Buffer.from(head + eventHash, "hex"));
    assert.equal(chain.head, head, `seed ${SEED}, link ${link}`);
  }
});

test("HistoryChain rejects anything but a hash", () => {
  for (const text of ["", "ab", GENESIS.slice(1), GENESIS + "00", "zz" + GENESIS.slice(2)]) {
    assert.throws(() => new HistoryChain(text), AssertionError, text);
    assert.throws(() => new HistoryChain().append(text), AssertionError, text);
  }
});
