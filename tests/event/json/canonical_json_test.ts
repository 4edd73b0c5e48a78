/** Limits. tests/faults/json_fuzz_test.ts compares with the reference implementation. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";

const DEPTH_MAX = 1024;

test("canonicalize() rejects values without a canonical form", () => {
  const refused: [string, unknown][] = [
    ["NaN", NaN],
    ["Infinity", Infinity],
    ["-Infinity", -Infinity],
    ["undefined", undefined],
    ["a bigint", 1n],
    ["a symbol", Symbol("s")],
    ["a function", () => 1],
    ["a Date", new Date(0)],
    ["a Map", new Map()],
    ["a boxed number", Object(1)],
    ["an unpaired high surrogate", "a\ud83d"],
    ["an unpaired low surrogate", "\ude00a"],
    ["a long string with a surrogate", "x".repeat(1000) + "\ud83d"],
    ["a name with a surrogate", { "\ud83d": 1 }],
    ["a hole in an array", new Array(1)],
  ];
  for (const [title, value] of refused) {
    assert.throws(() => canonicalize(value), TypeError, title);
    assert.throws(() => canonicalize([{ a: value }]), TypeError, `${title}, nested`);
  }
});

test("canonicalize() limits container nesting, also of a value that contains itself", () => {
  const nest = (depth: number): unknown => {
    let value: unknown = 0;
    for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value };
    return value;
  };
  canonicalize(nest(DEPTH_MAX));
  assert.throws(() => canonicalize(nest(DEPTH_MAX + 1)), TypeError);
  assert.throws(() => canonicalize(nest(1_000_000)), TypeError);
  const cycle: unknown[] = [];
  cycle.push({ again: cycle });
  assert.throws(() => canonicalize(cycle), TypeError);
});
