import assert from "node:assert/strict";
import { test } from "node:test";
import { findJsonFault } from "../../../src/event/json/json_fault.ts";
import type { JsonValue } from "../../../src/event/json/json_value.ts";
import { JsonError, parseJson } from "../../../src/event/json/strict_json.ts";
import { INGEST_BODY_BYTES_MAX, JSON_DEPTH_MAX } from "../../../src/limits.ts";
import { mutate, randomJsonText, randomValue } from "../support/random_json.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function parseText(text: string): JsonValue {
  return parseJson(bytesOf(text));
}

test("parseJson() gives the value of a strict text", () => {
  assert.deepEqual(parseText(' {"a":[1,"\u00e9\\u00e9",null],"b":{"a":false}} '), {
    a: [1, "\u00e9\u00e9", null],
    b: { a: false },
  });
  const odd = parseText('{"__proto__":1,"constructor":{"__proto__":2}}') as object;
  assert.deepEqual(Object.keys(odd), ["__proto__", "constructor"]);
});

const REFUSED = [
  "",
  "\ufeff{}",
  "{} {}",
  '{"a":1,"a":1}',
  '{"a":1,"\\u0061":2}',
  '[{"x":{"\u00e9":1,"\\u00e9":2}}]',
  '{"__proto__":1,"__proto__":2}',
  '{"1":0,"1":0}',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  "1e309",
  "-1e309",
  "1" + "0".repeat(309) + ".0",
  "9007199254740993",
  "[-9007199254740993]",
  "1000000000000000000000",
  "NaN",
  "Infinity",
];

test("parseJson() throws a JsonError for what strict JSON does not allow", () => {
  for (const text of REFUSED) {
    assert.throws(() => parseText(text), JsonError, text);
  }
  for (
    const bytes of [[0x22, 0xff, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22], [0x22, 0xc0, 0x80, 0x22]]
  ) {
    assert.throws(() => parseJson(Uint8Array.from(bytes)), JsonError, bytes.join());
  }
});

const KEPT_NUMBERS: [text: string, value: number][] = [
  ["9007199254740991", 9007199254740991],
  ["9007199254740992", 9007199254740992],
  ["-9007199254740992", -9007199254740992],
  ["100000000000000000000", 1e20],
  ["18446744073709551617.0", 18446744073709552000],
  ["9007199254740993e0", 9007199254740992],
  ["1e30", 1e30],
  ["1.7976931348623157e308", Number.MAX_VALUE],
  ["1e-999", 0],
  ["-0", -0],
];

test("parseJson() keeps numbers that binary64 can hold", () => {
  for (const [text, value] of KEPT_NUMBERS) assert.deepEqual(parseText(text), value, text);
});

test("JsonError says where the fault is", () => {
  assert.throws(() => parseText('{"a":1,"a":2}'), {
    message: 'member "a" appears twice at byte 7',
  });
});

test(`parseJson() keeps every value it is given (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let round = 0; round < 2000; round++) {
    const value = randomValue(random, 6);
    const text = JSON.stringify(value);
    assert.equal(JSON.stringify(parseText(text)), text, `seed ${SEED}, round ${round}`);
  }
});

test(`parseJson() and findJsonFault() agree on mutated texts (seed ${SEED})`, () => {
  const random = new SeededRandom();
  let acceptedCount = 0;
  for (let round = 0; round < 25_000; round++) {
    const text = randomJsonText(random, 4);
    const bytes = random.chance(0.8) ? mutate(random, text) : bytesOf(text);
    const title = `seed ${SEED}, round ${round}`;
    const fault = findJsonFault(bytes);
    const builtIn = tryBuiltIn(bytes);
    const value = tryStrict(bytes);
    assert.equal(value === undefined, fault !== null, title);
    if (fault === null) {
      // The built-in parser may take escaped names for others: see json_escaped_name_test.ts.
      if (!bytes.includes(BACKSLASH)) assert.deepEqual(value, builtIn, title);
      acceptedCount++;
    } else if (builtIn !== undefined) {
      assert.match(fault.message, /appears twice|unpaired|too large|can't keep/, title);
    }
  }
  assert.ok(acceptedCount > 2000, `only ${acceptedCount} texts were strict JSON`);
});

const BACKSLASH = 0x5c;

function tryBuiltIn(bytes: Uint8Array): JsonValue | undefined {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

function tryStrict(bytes: Uint8Array): JsonValue | undefined {
  try {
    return parseJson(bytes);
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

test("parseJson() survives a million levels, open or closed", () => {
  const levels = 1_000_000;
  assert.throws(() => parseText("[".repeat(levels)), JsonError);
  assert.throws(() => parseText('{"a":'.repeat(levels)), JsonError);
  assert.throws(() => parseText("[".repeat(levels) + "}"), JsonError);
  assert.throws(() => parseText("[".repeat(levels) + "]".repeat(levels - 1)), JsonError);
  assert.equal(depthOf(parseText("[".repeat(levels) + "]".repeat(levels))), JSON_DEPTH_MAX);
  const objects = parseText('{"a":'.repeat(levels) + "1" + "}".repeat(levels));
  assert.equal(depthOf(objects), JSON_DEPTH_MAX);
});

function depthOf(value: JsonValue | undefined): number {
  let depth = 0;
  for (let inner = value; typeof inner === "object" && inner !== null; depth++) {
    inner = Object.values(inner)[0];
  }
  return depth;
}

test("parseJson() cuts what lies below its depth and keeps the rest", () => {
  const nest = (depth: number, inner: string) => "[".repeat(depth) + inner + "]".repeat(depth);
  const deepest = nest(JSON_DEPTH_MAX, "7");
  assert.deepEqual(parseText(deepest), JSON.parse(deepest));
  const tooDeep = nest(JSON_DEPTH_MAX - 1, '{"a]\\"}":{"b":"]"},"c":[[]]},"\\\\[",[{}],[5]');
  const cut = nest(JSON_DEPTH_MAX - 1, '{"a]\\"}":0,"c":0},"\\\\[",[0],[5]');
  assert.deepEqual(parseText(tooDeep), JSON.parse(cut));
});

test("parseJson() finds faults below its depth", () => {
  const nest = (inner: string) => "[".repeat(1000) + inner + "]".repeat(1000);
  for (const inner of ['{"a":1,"a":2}', "1e999", '"\\ud800"', "9007199254740993", "01"]) {
    assert.throws(() => parseText(nest(inner)), JsonError, inner);
  }
});

test("parseJson() takes the largest body, whatever it is made of", () => {
  const filled = (open: string, unit: string, close: string) => {
    const count = Math.floor((INGEST_BODY_BYTES_MAX - open.length - close.length) / unit.length);
    return bytesOf(open + unit.repeat(count) + close);
  };
  assert.equal((parseJson(filled('"', "x", '"')) as string).length, INGEST_BODY_BYTES_MAX - 2);
  assert.equal(parseJson(filled("", " ", "1")), 1);
  assert.throws(() => parseJson(filled("", "1", "")), JsonError);
});
