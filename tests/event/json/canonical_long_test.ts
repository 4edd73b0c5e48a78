/**
 * The bug: V8 kept the text of a payload of millions of small values as a tree of its additions,
 * which took a gigabyte and ended the service. Now it is made whole piece by piece; this holds the
 * pieces together. That they save the memory is shown in tests/faults/memory_limit_test.ts.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";

const NUMBERS = Array.from({ length: 20_000 }, (_, number) => number);
/** In the order of their UTF-16 code units. */
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
