/**
 * Compares the fast path for reading a batch with the slow path. Both return the same batch for any
 * body that the fast path accepts. SEED chooses the bodies.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { checkBatch } from "../../src/event/batch.ts";
import { encodeBatch } from "../../src/event/batch_encoder.ts";
import { readFastBatch } from "../../src/event/batch_fast_path.ts";
import { mutate, randomValue } from "./support/random_json.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";

const BODIES = 4000;

test(`readFastBatch() and the slow path return the same batch (seed ${SEED})`, () => {
  const random = new SeededRandom();
  let taken = 0;
  for (let number = 0; number < BODIES; number++) {
    const body = randomBody(random);
    const fast = readFastBatch(body);
    if (fast === null) continue;
    taken += 1;
    const where = `body ${number} of seed ${SEED}: ${body.toString("latin1")}`;
    assert.deepEqual(fast, encodeBatch(checkBatch(body)), where);
  }
  assert.ok(taken > BODIES / 8 && taken < BODIES, `${taken} of ${BODIES} bodies were accepted`);
});

function randomBody(random: SeededRandom): Buffer {
  const events = Array.from({ length: 1 + random.below(3) }, () => randomEvent(random));
  const members = shuffled(random, [
    `"source":"${random.chance(0.1) ? random.pick(["A", "system"]) : random.pick(["a", "b.c"])}"`,
    `"batch_id":${randomName(random)}`,
    `"events":[${events.join()}]`,
    ...(random.chance(0.3) ? [`"stream_precondition":${randomPrecondition(random)}`] : []),
    ...(random.chance(0.2) ? [`"v":${random.pick(["1", "1.0", "2"])}`] : []),
  ]);
  const text = `{${members.join(random.pick([",", " ,\n"]))}}`;
  return Buffer.from(random.chance(0.3) ? mutate(random, text) : text);
}

function randomPrecondition(random: SeededRandom): string {
  const id = '"019b76da-a800-7001-8203-040506070809"';
  const members = shuffled(random, [
    `"stream":"${random.pick(["s", "s", "s.t"])}"`,
    `"expected_frontier":${random.pick(["null", id, id, '"x"', "1"])}`,
  ]);
  return `{${members.join()}}`;
}

function randomEvent(random: SeededRandom): string {
  const members = shuffled(random, [
    `"stream":"${random.pick(["s", "s.t", "0"])}"`,
    `"record_key":${randomName(random)}`,
    `"kind":${randomName(random)}`,
    ...(random.chance(0.5) ? ['"occurred_at":"2026-01-02T03:04:05.5Z"'] : []),
    `"payload":${JSON.stringify(randomValue(random, 3))}`,
  ]);
  return `{${members.join()}}`;
}

/** A random name. A few contain an escape, which the fast path leaves to the slow path. */
function randomName(random: SeededRandom): string {
  return random.chance(0.05) ? JSON.stringify(random.text(10)) : `"${random.pick(NAMES)}"`;
}

const NAMES = ["b", "upserted", "é€", "😀", "a b/c", "\u007f", "k".repeat(100)];

function shuffled<T>(random: SeededRandom, items: T[]): T[] {
  return items.map((item) => ({ item, key: random.below(1000) })).sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}
