import assert from "node:assert/strict";
import { test } from "node:test";
import { EventIdSource, eventIdTimestampMs, isEventId } from "../../src/event/event_id.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";

const NOW_MS = 0x019b7c4e2d2f;

function zeros(into: Uint8Array): void {
  into.fill(0);
}

test("EventIdSource.reserve() takes the present millisecond, or the second after the last id's", () => {
  let nowMs = NOW_MS;
  const ids = new EventIdSource(() => nowMs, zeros, null);
  ids.next();
  assert.equal(eventIdTimestampMs(ids.reserve(3)[0]!), NOW_MS + 2);
  ids.release();
  nowMs = NOW_MS + 1000;
  assert.equal(eventIdTimestampMs(ids.reserve(3)[0]!), nowMs);
});

test("EventIdSource.release() goes on after the ids that were set aside", () => {
  const ids = new EventIdSource(() => NOW_MS, zeros, null);
  const reserved = ids.reserve(2);
  assert.deepEqual(reserved, [
    "019b7c4e-2d2f-7000-8000-000000000000",
    "019b7c4e-2d2f-7000-8000-000000000001",
  ]);
  assert.equal(ids.next(), "019b7c4e-2d2e-7000-8000-000000000000");
  ids.release();
  assert.equal(ids.next(), "019b7c4e-2d2f-7000-8000-000000000002");
});

test("EventIdSource.reserve() leaves room below at the beginning of time too", () => {
  const ids = new EventIdSource(() => 0, zeros, null);
  const [first] = ids.reserve(1);
  assert.ok(ids.next() < first!);
});

test("EventIdSource.reserve() leaves room below for a last id that carries over into the time", () => {
  for (const fill of [0, 0xff]) {
    const last = "019b7c4e-2d37-7fff-bfff-ffffffffffff";
    const ids = new EventIdSource(() => 0, (into) => into.fill(fill), last);
    const [first] = ids.reserve(2);
    assert.ok(ids.next() < first!, `random bytes ${fill}`);
    assert.ok(ids.next() < first!, `random bytes ${fill}`);
  }
});

test("EventIdSource.reserve() throws when no id is left", () => {
  const ids = new EventIdSource(() => 0, zeros, "ffffffff-ffff-7fff-bfff-fffffffffffe");
  assert.throws(() => ids.reserve(1), RangeError);
});

test(`EventIdSource.reserve() keeps next() below it under hostile clocks (seed ${SEED})`, () => {
  const random = new SeededRandom();
  let nowMs = NOW_MS;
  const hostileClock = () => {
    if (random.chance(0.05)) nowMs += random.below(2000) - 1000;
    return nowMs;
  };
  const ids = new EventIdSource(hostileClock, (into) => random.bytes(into), null);
  let last = ids.next();
  const take = (id: string) => {
    assert.ok(isEventId(id) && last < id, `${last} then ${id}, seed ${SEED}`);
    last = id;
  };
  for (let round = 0; round < 200; round++) {
    const reserved = ids.reserve(1 + random.below(50));
    for (let count = random.below(50); count > 0; count--) take(ids.next());
    ids.release();
    if (random.chance(0.8)) reserved.forEach(take);
    for (let count = random.below(50); count > 0; count--) take(ids.next());
  }
});
