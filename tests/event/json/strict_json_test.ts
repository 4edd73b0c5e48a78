import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonValue } from "../../../src/event/json/strict_json.ts";
import { JsonError, type JsonFault, parseJson } from "../../../src/event/json/strict_json.ts";
import { INGEST_BODY_BYTES_MAX, JSON_DEPTH_MAX } from "../../../src/limits.ts";
import { mutate, randomJsonText, randomValue } from "../support/random_json.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function parseText(text: string): JsonValue {
  return parseJson(bytesOf(text));
}

/** Returns the fault that parseJson() finds, or null. */
function faultOf(bytes: Uint8Array): JsonFault | null {
  try {
    parseJson(bytes);
    return null;
  } catch (error) {
    if (error instanceof JsonError) return error.fault;
    throw error;
  }
}

test("parseJson() returns the value of strict JSON", () => {
  assert.deepEqual(parseText(' {"a":[1,"\u00e9\\u00e9",null],"b":{"a":false}} '), {
    a: [1, "\u00e9\u00e9", null],
    b: { a: false },
  });
  assert.deepEqual(parseText('[[],[[]],{},{"":[-0.5e+7,"\\ud83d\\ude00",true,false]}]'), [
    [],
    [[]],
    {},
    { "": [-0.5e7, "\u{1f600}", true, false] },
  ]);
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

test("parseJson() throws a JsonError for anything but strict JSON", () => {
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
  ["1e-400", 0],
  [" 0\r\n", 0],
];

test("parseJson() keeps numbers that binary64 can hold", () => {
  for (const [text, value] of KEPT_NUMBERS) assert.deepEqual(parseText(text), value, text);
});

const FAULTS: [text: string, message: RegExp, offsetBytes: number, path: (string | number)[]][] = [
  ["", /unexpected end/, 0, []],
  [" ", /unexpected end/, 1, []],
  ["\ufeff1", /unexpected/, 0, []],
  ["1 2", /unexpected "2"/, 2, []],
  ["nul", /unexpected "n"/, 0, []],
  ["nulll", /unexpected "l"/, 4, []],
  ["+1", /unexpected/, 0, []],
  ["01", /unexpected "1"/, 1, []],
  ["-", /unexpected end/, 1, []],
  ["1.", /unexpected end/, 2, []],
  ["[1.e5]", /unexpected "e"/, 3, [0]],
  [".5", /unexpected/, 0, []],
  ["1e", /unexpected end/, 2, []],
  ["[1e+]", /unexpected "\]"/, 4, [0]],
  ["[1,]", /unexpected "\]"/, 3, [1]],
  ["[,1]", /unexpected ","/, 1, [0]],
  ["[1 2]", /unexpected "2"/, 3, []],
  ["[1}", /unexpected "}"/, 2, []],
  ["]", /unexpected/, 0, []],
  ['{"a":1,}', /unexpected "}"/, 7, []],
  ['{"a"}', /unexpected "}"/, 4, []],
  ["{a:1}", /unexpected "a"/, 1, []],
  ['{"a":1]', /unexpected "\]"/, 6, []],
  ['{"a":1 "b":2}', /unexpected/, 7, []],
  ["'a'", /unexpected "'"/, 0, []],
  ['"a', /unexpected end/, 2, []],
  ['"a\\', /unexpected end/, 3, []],
  ['"a\nb"', /control character/, 2, []],
  ['"\\x"', /unknown escape/, 1, []],
  ['"\\u12g4"', /malformed \\u escape/, 1, []],
  ['"\\u12', /malformed \\u escape/, 1, []],
  ['["\\ud800"]', /unpaired surrogate/, 2, [0]],
  ['["\\ud800\\ud800"]', /unpaired surrogate/, 2, [0]],
  ['["a\\udc00"]', /unpaired surrogate/, 3, [0]],
  ['["\\ud800\\n"]', /unpaired surrogate/, 2, [0]],
  ['{"\u20ac":{"a":1,"b":2,"\\u0061":3}}', /"a" appears twice/, 20, ["\u20ac"]],
  ['{"a":{"x":1},"a":2}', /"a" appears twice/, 13, []],
  ['{"events":[{},{"payload":{"k":[1e999]}}]}', /too large/, 31, ["events", 1, "payload", "k", 0]],
  ["[9007199254740993]", /cannot be represented exactly/, 1, [0]],
  ["[-9007199254740993]", /cannot be represented exactly/, 1, [0]],
  ["1000000000000000000000", /cannot be represented exactly/, 0, []],
  ["1" + "0".repeat(400), /too large/, 0, []],
];

test("parseJson() reports a fault, its offset and its path", () => {
  for (const [text, message, offsetBytes, path] of FAULTS) {
    const fault = faultOf(bytesOf(text));
    assert.ok(fault !== null, text);
    assert.match(fault.message, message, text);
    assert.equal(fault.offsetBytes, offsetBytes, text);
    assert.deepEqual(fault.path, path, text);
  }
});

test("JsonError names the byte of a syntax fault, and the member that breaks a rule", () => {
  const cases: [text: string, message: string][] = [
    ['{"\u20ac":1]', 'not valid JSON at byte 8: unexpected "]"'],
    ['{"a":1,"a":2}', 'member "a" appears twice'],
    ["1e999", "1e999 is too large for a binary64 number; send it as a string"],
    [
      '{"events":[0,{"payload":{"total":9007199254740993}}]}',
      "events[1].payload.total: 9007199254740993 cannot be represented exactly as a binary64 " +
      "number; send it as a string",
    ],
    [
      '[{"a b":{"\u20ac":{"x":1,"x":2}}}]',
      '[0]["a b"]["\u20ac"]: member "x" appears twice',
    ],
    [`${"[".repeat(20)}1e999`, `${"[0]".repeat(16)}...: 1e999 is too large`],
  ];
  for (const [text, message] of cases) {
    assert.throws(() => parseText(text), (error) => {
      return error instanceof JsonError && error.message.startsWith(message);
    }, text);
  }
});

test("JsonError quotes a bounded part of the text", () => {
  const name = "n".repeat(100_000);
  for (const text of [`{"${name}":1,"${name}":2}`, "1".repeat(100_000), `{"${name}":1e999}`]) {
    assert.throws(() => parseText(text), ({ message }: Error) => message.length < 200);
  }
});

test("parseJson() finds malformed UTF-8, and an earlier fault first", () => {
  const cases: [before: string, after: string, message: RegExp, offsetBytes: number][] = [
    ['{"a":["', '"]}', /malformed UTF-8/, 7],
    ["[1,2]", "", /malformed UTF-8/, 5],
    ["[1,2", "]", /malformed UTF-8/, 4],
    ['["\ufffd","\ufffdx', '"]', /malformed UTF-8/, 12],
    ['{"a":1,"a":"', '"}', /appears twice/, 7],
    ['"a\\', '"', /malformed UTF-8/, 3],
  ];
  for (const [before, after, message, offsetBytes] of cases) {
    const fault = faultOf(Uint8Array.from([...bytesOf(before), 0xc3, ...bytesOf(after)]));
    assert.match(fault!.message, message, before);
    assert.equal(fault!.offsetBytes, offsetBytes, before);
  }
});

test(`parseJson() preserves every value (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let round = 0; round < 2000; round++) {
    const value = randomValue(random, 6);
    const text = JSON.stringify(value);
    assert.equal(JSON.stringify(parseText(text)), text, `seed ${SEED}, round ${round}`);
  }
});

test(`parseJson() agrees with the built-in parser on mutated texts (seed ${SEED})`, () => {
  const random = new SeededRandom();
  let acceptedCount = 0;
  for (let round = 0; round < 25_000; round++) {
    const text = randomJsonText(random, 4);
    const bytes = random.chance(0.8) ? mutate(random, text) : bytesOf(text);
    const title = `seed ${SEED}, round ${round}`;
    const fault = faultOf(bytes);
    const builtIn = tryBuiltIn(bytes);
    if (fault === null) {
      // The built-in parser may confuse escaped names: see json_escaped_name_test.ts.
      if (!bytes.includes(BACKSLASH)) assert.deepEqual(parseJson(bytes), builtIn, title);
      assert.notEqual(builtIn, undefined, title);
      acceptedCount++;
    } else if (builtIn !== undefined) assert.equal(fault.kind, "rule", title);
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

test("parseJson() drops values beyond its depth and keeps the rest", () => {
  const nest = (depth: number, inner: string) => "[".repeat(depth) + inner + "]".repeat(depth);
  const deepest = nest(JSON_DEPTH_MAX, "7");
  assert.deepEqual(parseText(deepest), JSON.parse(deepest));
  const tooDeep = nest(JSON_DEPTH_MAX - 1, '{"a]\\"}":{"b":"]"},"c":[[]]},"\\\\[",[{}],[5]');
  const cut = nest(JSON_DEPTH_MAX - 1, '{"a]\\"}":0,"c":0},"\\\\[",[0],[5]');
  assert.deepEqual(parseText(tooDeep), JSON.parse(cut));
});

test("parseJson() finds faults beyond its depth", () => {
  const nest = (inner: string) => "[".repeat(1000) + inner + "]".repeat(1000);
  for (const inner of ['{"a":1,"a":2}', "1e999", '"\\ud800"', "9007199254740993", "01"]) {
    assert.throws(() => parseText(nest(inner)), JsonError, inner);
  }
});

test("parseJson() parses the largest body, whatever its content", () => {
  const filled = (open: string, unit: string, close: string) => {
    const count = Math.floor((INGEST_BODY_BYTES_MAX - open.length - close.length) / unit.length);
    return bytesOf(open + unit.repeat(count) + close);
  };
  assert.equal((parseJson(filled('"', "x", '"')) as string).length, INGEST_BODY_BYTES_MAX - 2);
  assert.equal(parseJson(filled("", " ", "1")), 1);
  assert.throws(() => parseJson(filled("", "1", "")), JsonError);
});
