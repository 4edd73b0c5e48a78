import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { KeyTable } from "../../../src/log/segment/key_table.ts";
import { randomInteger, seededRandom, testSeed } from "../../../tools/support/random.ts";

function add(table: KeyTable, text: string): number {
  const bytes = Buffer.from(text, "latin1");
  return table.add(bytes, bytes.length);
}

function find(table: KeyTable, text: string): number | null {
  const bytes = Buffer.from(text, "latin1");
  return table.find(bytes, bytes.length);
}

const seed = testSeed();

test(`KeyTable numbers keys as a Map would, also when it grows (SEED=${seed})`, () => {
  const random = seededRandom(seed);
  const table = new KeyTable();
  const numbers = new Map<string, number>();
  for (let round = 0; round < 5000; round++) {
    const length = randomInteger(random, 0, 3);
    const text = Array.from(
      { length },
      () => String.fromCharCode(randomInteger(random, 0x61, 0x70)),
    ).join("") + "x".repeat(randomInteger(random, 0, 200));
    assert.equal(find(table, text), numbers.get(text) ?? null);
    if (!numbers.has(text)) numbers.set(text, numbers.size);
    assert.equal(add(table, text), numbers.get(text));
    assert.equal(table.size, numbers.size);
  }
  for (const [text, number] of numbers) assert.equal(table.textOf(number), text);
});

test("KeyTable takes keys of any bytes, and only the bytes it is told", () => {
  const table = new KeyTable();
  assert.equal(add(table, ""), 0);
  assert.equal(add(table, "\0"), 1);
  assert.equal(add(table, "\xff\0"), 2);
  assert.equal(table.add(Buffer.from("\xff\0more", "latin1"), 2), 2);
  assert.equal(find(table, "\xff"), null);
  assert.equal(table.textOf(2), "\xff\0");
});

test("KeyTable.compare() is the order of bytes", () => {
  const texts = ["", "\0", "a", "a b", "a-b", "aa", "b", "\xff"];
  const table = new KeyTable();
  for (const text of texts) add(table, text);
  for (let left = 0; left < texts.length; left++) {
    for (let right = 0; right < texts.length; right++) {
      assert.equal(Math.sign(table.compare(left, right)), Math.sign(left - right));
    }
  }
});

test("KeyTable.copy() stays as it is, and so does the original when the copy grows", () => {
  const table = new KeyTable();
  add(table, "a");
  const copy = table.copy();
  add(table, "b");
  add(copy, "c");
  assert.deepEqual([find(table, "a"), find(table, "b"), find(table, "c")], [0, 1, null]);
  assert.deepEqual([find(copy, "a"), find(copy, "b"), find(copy, "c")], [0, null, 1]);
});
