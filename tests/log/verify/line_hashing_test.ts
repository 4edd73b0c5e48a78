import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { HASH_THREAD_LOG_BYTES_MIN, startHashThread } from "../../../src/log/verify/hash_thread.ts";
import {
  areHashesRight,
  HASH_AHEAD_BYTES_MAX,
  hashAhead,
  type LineHashing,
} from "../../../src/log/verify/line_hashing.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { hostileBatch, pendingFile, smallBatches, splitLines } from "../../support/test_segment.ts";

/** Lines in memory of their own. */
function linesOf(random?: SeededRandom): Buffer {
  const batches = random === undefined
    ? smallBatches(100)
    : Array.from({ length: 100 }, (_, number) => hostileBatch(random, number, 3));
  const { lines } = pendingFile([batches]);
  const own = Buffer.allocUnsafeSlow(lines.length);
  lines.copy(own);
  return own;
}

test(`areHashesRight() passes what was committed (seed ${SEED})`, () => {
  assert.ok(areHashesRight(linesOf(new SeededRandom())));
  assert.ok(areHashesRight(Buffer.alloc(0)));
});

test("areHashesRight() sees any change of a line, at any of its bytes", () => {
  const [first, second] = splitLines(linesOf());
  const lines = Buffer.concat([first!, second!]);
  for (let at = first!.length; at < lines.length; at++) {
    const changed = Buffer.from(lines);
    changed[at]! ^= 1;
    assert.ok(!areHashesRight(changed), `byte ${at}`);
  }
  assert.ok(!areHashesRight(lines.subarray(0, -1)), "without its end");
});

/** Answers only when told. */
class HeldHashing implements LineHashing {
  readonly asked: Buffer[] = [];
  readonly #waiting: PromiseWithResolvers<{ lines: Buffer; areHashed: boolean }>[] = [];

  check(lines: Buffer) {
    this.asked.push(lines);
    const waiting = Promise.withResolvers<{ lines: Buffer; areHashed: boolean }>();
    this.#waiting.push(waiting);
    return waiting.promise;
  }

  /** Only the second ones asked for are not right. */
  answer(number: number): void {
    this.#waiting[number]!.resolve({ lines: this.asked[number]!, areHashed: number !== 1 });
  }

  fail(number: number, error: Error): void {
    this.#waiting[number]!.reject(error);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

async function* itemsOf(sizes: number[]) {
  for (const [number, size] of sizes.entries()) yield { number, lines: Buffer.alloc(size) };
}

test("hashAhead() gives items in their order, whatever order the answers come in", async () => {
  const hashing = new HeldHashing();
  const items = hashAhead(itemsOf([1, 2, 3]), hashing);
  const first = items.next();
  await turn();
  assert.equal(hashing.asked.length, 3, "all are asked for before the first is taken");
  for (const number of [2, 1, 0]) hashing.answer(number);
  const taken = [(await first).value!];
  for await (const item of items) taken.push(item);
  assert.deepEqual(taken.map(({ number }) => number), [0, 1, 2]);
  assert.deepEqual(taken.map(({ areHashed }) => areHashed), [true, false, true]);
});

test("hashAhead() holds no more lines than there is room for", async () => {
  const hashing = new HeldHashing();
  const size = HASH_AHEAD_BYTES_MAX / 2;
  const items = hashAhead(itemsOf(Array(5).fill(size)), hashing);
  for (let number = 0; number < 5; number++) {
    const next = items.next();
    await turn();
    assert.equal(hashing.asked.length, Math.min(5, number + 3));
    hashing.answer(number);
    assert.equal((await next).value!.number, number);
  }
  assert.ok((await items.next()).done);
});

test("hashAhead() fails where a check has failed, and leaves no rejection when it is left", async () => {
  const hashing = new HeldHashing();
  const items = hashAhead(itemsOf([1, 1, 1]), hashing);
  const first = items.next();
  await turn();
  hashing.fail(1, new Error("gone"));
  hashing.answer(0);
  await first;
  await assert.rejects(items.next(), /gone/);
  hashing.fail(2, new Error("never seen"));
  await turn();
});

test("startHashThread() recomputes hashes on another thread and gives the memory back", async () => {
  const thread = startHashThread(HASH_THREAD_LOG_BYTES_MIN)!;
  try {
    const lines = linesOf();
    const copy = Buffer.from(lines);
    const wrong = linesOf();
    wrong[wrong.length >> 1]! ^= 1;
    const answers = await Promise.all([lines, wrong, linesOf()].map((each) => thread.check(each)));
    assert.deepEqual(answers.map(({ areHashed }) => areHashed), [true, false, true]);
    assert.ok(answers[0]!.lines.equals(copy));
    assert.equal(lines.length, 0, "the memory has moved");
    const last = thread.check(linesOf());
    await thread.close();
    // It has an answer, or never will.
    await Promise.allSettled([last]);
    await assert.rejects(thread.check(linesOf()), /has ended/);
  } finally {
    await thread.close();
  }
});

test("startHashThread() starts none for a small log", () => {
  assert.equal(startHashThread(HASH_THREAD_LOG_BYTES_MIN - 1), null);
});
