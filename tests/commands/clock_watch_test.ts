import assert from "node:assert/strict";
import { test } from "node:test";
import { watchClock } from "../../src/commands/clock_watch.ts";

const MINUTE_MS = 60_000;
/** An id of 2026-01-01T00:00:00Z. */
const idOf = (number: number) => `019b76da-a800-7001-8203-04050607${1000 + number}`;
const ID_MS = 0x019b76daa800;

function watched(nowMs: number) {
  const lines: string[] = [];
  const time = { nowMs, passedMs: 5 };
  const report = (line: string) => void lines.push(line);
  const look = watchClock(() => time.nowMs, () => time.passedMs, report);
  const pass = (durationMs: number) => {
    time.nowMs += durationMs;
    time.passedMs += durationMs;
  };
  return { look, lines, time, pass };
}

test("watchClock() reports a clock behind the last id once per ten minutes, after a commit", () => {
  const { look, lines, pass } = watched(ID_MS - 60 * MINUTE_MS);
  look(null);
  assert.deepEqual(lines, []);
  look(idOf(0));
  assert.match(lines.join(), /^the clock is 3600 s behind the last event 019b76da-.*1000; until/);
  pass(10 * MINUTE_MS - 1);
  look(idOf(1));
  assert.equal(lines.length, 1, "too soon");
  pass(1);
  look(idOf(1));
  assert.equal(lines.length, 1, "no commit");
  look(idOf(2));
  assert.equal(lines.length, 2);
  pass(49 * MINUTE_MS);
  look(idOf(3));
  assert.equal(lines.length, 2, "behind by one minute");
});

test("watchClock() reports a clock that jumps by more than an hour, but not time that passes", () => {
  const { look, lines, time, pass } = watched(ID_MS);
  pass(300 * MINUTE_MS);
  look(null);
  time.nowMs += 60 * MINUTE_MS;
  look(null);
  assert.deepEqual(lines, []);
  time.nowMs += 60 * MINUTE_MS + 1;
  look(null);
  look(null);
  time.nowMs -= 120 * MINUTE_MS;
  look(null);
  assert.deepEqual(lines, ["the clock jumped by 3600 s", "the clock jumped by -7200 s"]);
});
