import assert from "node:assert/strict";
import { test } from "node:test";
import { EventIdSource, firstIdAt, idBefore, isEventId } from "../../src/event/event_id.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";

const NOW_MS = 1_767_323_045_007;

function zeros(into: Uint8Array): void {
  into.fill(0);
}

test("isEventId() accepts only canonical UUIDv7", () => {
  const valid = "019b7c4e-2d37-7a01-8f00-0123456789ab";
  assert.ok(isEventId(valid));
  for (const variant of "89ab") assert.ok(isEventId(valid.replace("-8f00", `-${variant}f00`)));
  const refused = [
    "",
    valid.toUpperCase(),
    valid.replaceAll("-", ""),
    `{${valid}}`,
    `urn:uuid:${valid}`,
    valid + "\n",
    " " + valid,
    valid.slice(1),
    valid + "0",
    valid.replace("-7a01", "-4a01"),
    valid.replace("-7a01", "-8a01"),
    valid.replace("-8f00", "-7f00"),
    valid.replace("-8f00", "-cf00"),
    valid.replace("019b", "019g"),
  ];
  for (const text of refused) assert.ok(!isEventId(text), text);
});

test("EventIdSource.next() lays out timestamp, version, variant and random bits as in RFC 9562", () => {
  const ones = new EventIdSource(() => 0x019b7c4e2d37, (into) => into.fill(0xff), null);
  assert.equal(
    ones.next(),
    "019b7c4e-2d37-77ff-bfff-ffffffffffff",
    "headroom: the top bit is clear",
  );
  const none = new EventIdSource(() => 5.75, zeros, null);
  assert.equal(none.next(), "00000000-0005-7000-8000-000000000000");
});

test("EventIdSource.next() increments by one while the clock stands still", () => {
  const ids = new EventIdSource(() => NOW_MS, zeros, null);
  const tails = Array.from({ length: 4098 }, () => ids.next().slice(-6));
  assert.deepEqual(tails.slice(0, 2), ["000000", "000001"]);
  assert.deepEqual(tails.slice(4095), ["000fff", "001000", "001001"]);
});

/** Pairs of ids: `next` follows `last` while the clock is behind `last`. */
const SUCCESSORS: Record<string, [last: string, next: string]> = {
  "last three digits": ["2d37-7a01-8f00-0123456789fe", "2d37-7a01-8f00-0123456789ff"],
  "carry into the low part": ["2d37-7a01-8f00-012345678fff", "2d37-7a01-8f00-012345679000"],
  "carry into the high part": ["2d37-7a01-8f00-ffffffffffff", "2d37-7a01-8f01-000000000000"],
  "carry across the variant": ["2d37-7a01-bfff-ffffffffffff", "2d37-7a02-8000-000000000000"],
  "carry into the timestamp": ["2d37-7fff-bfff-ffffffffffff", "2d38-7000-8000-000000000000"],
};

test("EventIdSource.next() continues from a last id in the future", () => {
  for (const time of ["019b7c4e", "ffffffff"]) {
    for (const [title, [last, next]] of Object.entries(SUCCESSORS)) {
      const ids = new EventIdSource(() => 0, zeros, `${time}-${last}`);
      assert.equal(ids.next(), `${time}-${next}`, title);
    }
  }
});

test("EventIdSource.next() uses new random bits once the clock has passed the last id", () => {
  const last = "019b7c4e-2d37-7fff-bfff-ffffffffffff";
  const ids = new EventIdSource(() => 0x019b7c4e2d38, zeros, last);
  assert.equal(ids.next(), "019b7c4e-2d38-7000-8000-000000000000");
});

test("EventIdSource.next() throws when no id is left", () => {
  const ids = new EventIdSource(() => 0, zeros, "ffffffff-ffff-7fff-bfff-fffffffffffe");
  assert.equal(ids.next(), "ffffffff-ffff-7fff-bfff-ffffffffffff");
  assert.throws(() => ids.next(), RangeError);
  assert.throws(() => ids.next(), RangeError, "and keeps throwing");
  assert.throws(() => new EventIdSource(() => 2 ** 48, zeros, null).next(), RangeError);
});

test(`EventIdSource.next() returns increasing ids under hostile clocks (seed ${SEED})`, () => {
  const random = new SeededRandom();
  let nowMs = NOW_MS;
  const hostileClock = () => {
    if (random.chance(0.01)) nowMs += random.below(2000) - 1000;
    else if (random.chance(0.05)) nowMs += 1;
    return random.chance(0.001) ? -1 : nowMs + random.below(4) / 4;
  };
  // Starts just below a carry, so that runs often cross it.
  const nearlyFull = (into: Uint8Array) => {
    random.bytes(into);
    if (random.chance(0.5)) into.fill(0xff, random.below(6));
  };
  let last: string | null = null;
  for (let restart = 0; restart < 20; restart++) {
    const ids: EventIdSource = new EventIdSource(hostileClock, nearlyFull, last);
    for (let count = 0; count < 1000; count++) {
      const id = ids.next();
      assert.ok(isEventId(id), id);
      assert.ok(last === null || last < id, `${last} then ${id}, seed ${SEED}`);
      last = id;
    }
  }
});

test("idBefore() returns the preceding id, and borrows across version and variant", () => {
  const cases = [
    ["01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000000"],
    ["01900000-0000-7000-8001-000000000000", "01900000-0000-7000-8000-ffffffffffff"],
    ["01900000-0000-7001-8000-000000000000", "01900000-0000-7000-bfff-ffffffffffff"],
    ["01900000-0000-7000-8000-000000000000", "018fffff-ffff-7fff-bfff-ffffffffffff"],
    ["ffffffff-ffff-7fff-bfff-ffffffffffff", "ffffffff-ffff-7fff-bfff-fffffffffffe"],
    ["00000000-0000-7000-8000-000000000001", "00000000-0000-7000-8000-000000000000"],
    ["00000000-0000-7000-8000-000000000000", undefined],
    ["01900000-0000-4000-8000-000000000001", undefined],
    ["", undefined],
  ] as const;
  for (const [id, before] of cases) assert.equal(idBefore(id), before, id);
});

test("firstIdAt() precedes the ids of its millisecond and follows earlier ones", () => {
  for (const ms of [1, 1_769_817_600_000, 2 ** 48 - 2]) {
    const idOf = (timeMs: number, fill: number) =>
      new EventIdSource(() => timeMs, (bytes) => void bytes.fill(fill), null).next();
    assert.ok(isEventId(firstIdAt(ms + 0.9)));
    assert.ok(firstIdAt(ms + 0.9) < idOf(ms, 1), String(ms));
    assert.ok(firstIdAt(ms) > idOf(ms - 1, 255), String(ms));
  }
  assert.equal(firstIdAt(-1), firstIdAt(0));
  assert.equal(firstIdAt(Infinity), firstIdAt(2 ** 48 - 1));
});
