/** Samples and limits. tests/faults/json_fuzz_test.ts compares random values with an oracle. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";

const DEPTH_MAX = 1024;

test("canonicalize() sorts members by UTF-16 code units", () => {
  // The example in RFC 8785 section 3.2.3: a surrogate pair sorts before U+FB33.
  const sample = {
    "\u20ac": "Euro Sign",
    "\r": "Carriage Return",
    "\ufb33": "Hebrew Letter Dalet With Dagesh",
    "1": "One",
    "\ud83d\ude00": "Emoji: Grinning Face",
    "\u0080": "Control",
    "\u00f6": "Latin Small Letter O With Diaeresis",
  };
  const names = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\ud83d\ude00", "\ufb33"] as const;
  const members = names.map((name) => `${JSON.stringify(name)}:${JSON.stringify(sample[name])}`);
  assert.equal(canonicalize(sample), `{${members.join(",")}}`);
});

/** Bit patterns and their strings from RFC 8785 appendix B. */
const NUMBER_SAMPLES: [bits: string, text: string][] = [
  ["0000000000000000", "0"],
  ["8000000000000000", "0"],
  ["0000000000000001", "5e-324"],
  ["8000000000000001", "-5e-324"],
  ["7fefffffffffffff", "1.7976931348623157e+308"],
  ["ffefffffffffffff", "-1.7976931348623157e+308"],
  ["4340000000000000", "9007199254740992"],
  ["c340000000000000", "-9007199254740992"],
  ["4430000000000000", "295147905179352830000"],
  ["44b52d02c7e14af5", "9.999999999999997e+22"],
  ["44b52d02c7e14af6", "1e+23"],
  ["44b52d02c7e14af7", "1.0000000000000001e+23"],
  ["444b1ae4d6e2ef4e", "999999999999999700000"],
  ["444b1ae4d6e2ef4f", "999999999999999900000"],
  ["444b1ae4d6e2ef50", "1e+21"],
  ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
  ["3eb0c6f7a0b5ed8d", "0.000001"],
  ["41b3de4355555553", "333333333.3333332"],
  ["41b3de4355555554", "333333333.33333325"],
  ["41b3de4355555555", "333333333.3333333"],
  ["41b3de4355555556", "333333333.3333334"],
  ["41b3de4355555557", "333333333.33333343"],
  ["becbf647612f3696", "-0.0000033333333333333333"],
  ["43143ff3c1cb0959", "1424953923781206.2"],
];

test("canonicalize() formats the numbers in RFC 8785 appendix B", () => {
  for (const [bits, text] of NUMBER_SAMPLES) {
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, BigInt("0x" + bits));
    assert.equal(canonicalize(view.getFloat64(0)), text, bits);
  }
});

test("canonicalize() escapes only what RFC 8785 section 3.2.2.2 requires", () => {
  const cases: [string, string][] = [
    ["\b\t\n\f\r", '"\\b\\t\\n\\f\\r"'],
    ["\u0000\u001f\u007f", '"\\u0000\\u001f\u007f"'],
    ['"\\/', '"\\"\\\\/"'],
    ["\u2028\u00e9\ud83d\ude00", '"\u2028\u00e9\ud83d\ude00"'],
  ];
  for (const [value, text] of cases) assert.equal(canonicalize(value), text);
});

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

test("canonicalize() limits container nesting", () => {
  const nest = (depth: number): unknown => {
    let value: unknown = 0;
    for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value };
    return value;
  };
  canonicalize(nest(DEPTH_MAX));
  assert.throws(() => canonicalize(nest(DEPTH_MAX + 1)), TypeError);
  assert.throws(() => canonicalize(nest(1_000_000)), TypeError);
});

test("canonicalize() rejects a value that contains itself", () => {
  const cycle: unknown[] = [];
  cycle.push({ again: cycle });
  assert.throws(() => canonicalize(cycle), TypeError);
});

/*
 * Regression: V8 kept the JSON of a payload of millions of small values as a rope, which took a
 * gigabyte and killed the service. tests/faults/memory_limit_test.ts covers memory.
 */
const NUMBERS = Array.from({ length: 20_000 }, (_, number) => number);
/** Member names, sorted by UTF-16 code units. */
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
  test(`canonicalize() formats ${title} longer than one chunk`, () => {
    assert.equal(canonicalize(value), JSON.stringify(value));
  });
}
