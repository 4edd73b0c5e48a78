/**
 * The bug: V8 kept the text of a payload of millions of small values as a rope, which took a
 * gigabyte and ended the service. Ropes are now flattened piece by piece; this tests the result,
 * and tests/faults/memory_limit_test.ts the memory.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";

const NUMBERS = Array.from({ length: 20_000 }, (_, number) => number);
/** Sorted by UTF-16 code units. */
const NAMES = NUMBERS.map((number) => `n${String(number).padStart(6, "0")}`);

const LONG_VALUES: [title: string, value: unknown][] = [
  ["an array", NUMBERS],
  ["an object", Object.fromEntries(NAMES.map((name, number) => [name, number]))],
  ["an array of long items", ["a".repeat(10_000), "b".repeat(5000), [], {}, "c".repeat(4095)]],
  [
    "arrays in objects in arrays",
    NAMES.slice(0, 5000).map((name) => ({ a: [name, [name]], b: 1 })),
  ],
];

for (const [title, value] of LONG_VALUES) {
  test(`canonicalize() formats ${title} that is longer than a piece`, () => {
    assert.equal(canonicalize(value), JSON.stringify(value));
  });
}
