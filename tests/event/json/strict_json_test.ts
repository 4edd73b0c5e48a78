/** Handwritten documents. tests/faults/json_fuzz_test.ts tests the parser on random ones. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonValue } from "../../../src/event/json/strict_json.ts";
import { JsonError, parseJson } from "../../../src/event/json/strict_json.ts";
import { INGEST_BODY_BYTES_MAX, JSON_DEPTH_MAX } from "../../../src/limits.ts";

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function parseText(text: string): JsonValue {
  return parseJson(bytesOf(text));
}

/** The error that parseJson() reports, or null. */
function faultOf(bytes: Uint8Array): JsonError | null {
  try {
    parseJson(bytes);
    return null;
  } catch (error) {
    if (error instanceof JsonError) return error;
    throw error;
  }
}

const SYNTAX_FAULTS: [text: string, offsetBytes: number, message: string][] = [
  ["", 0, "unexpected end of input"],
  ["\ufeff1", 0, 'unexpected "\ufeff"'],
  ["1 2", 2, 'unexpected "2"'],
  ["nul", 0, 'unexpected "n"'],
  ["+1", 0, 'unexpected "+"'],
  ["01", 1, 'unexpected "1"'],
  ["[1.e5]", 2, 'unexpected "."'],
  ["[1,]", 3, 'unexpected "]"'],
  ["[1 2]", 3, 'unexpected "2"'],
  ["{a:1}", 1, 'unexpected "a"'],
  ['{"\u20ac":1]', 8, 'unexpected "]"'],
  ['{"a":1 "b":2}', 7, 'unexpected "\\""'],
  ['"a', 2, "unexpected end of input"],
  ['"a\\', 2, "malformed escape in a string"],
  ['"a\nb"', 2, "unescaped control character in a string"],
  ['"\\x"', 1, "malformed escape in a string"],
];

test("parseJson() reports the byte at which a document stops being JSON", () => {
  for (const [text, offsetBytes, message] of SYNTAX_FAULTS) {
    const fault = faultOf(bytesOf(text));
    assert.equal(fault?.message, `not valid JSON at byte ${offsetBytes}: ${message}`, text);
  }
});

const UNPAIRED = "unpaired surrogate escape in a string";
const respelled = (value: string) =>
  `is not how RFC 8785 writes its binary64 value, ${value}; send it as a string`;
const RULE_FAULTS: [text: string, path: (string | number)[], message: string][] = [
  ['["\\ud800"]', [0], `[0]: ${UNPAIRED}`],
  ['["\\ud800\\ud800"]', [0], `[0]: ${UNPAIRED}`],
  ['["a\\udc00"]', [0], `[0]: ${UNPAIRED}`],
  ['["\\ud800\\n"]', [0], `[0]: ${UNPAIRED}`],
  ['{"a":{"x":1},"a":2}', [], 'member "a" appears twice'],
  [
    '[{"a b":{"\u20ac":{"x":1,"y":2,"\\u0078":2}}}]',
    [0, "a b", "\u20ac"],
    '[0]["a b"]["\u20ac"]: member "x" appears twice',
  ],
  ["1e999", [], "1e999 is too large for a binary64 number; send it as a string"],
  [
    '{"events":[0,{"payload":{"k":[9007199254740993]}}]}',
    ["events", 1, "payload", "k", 0],
    `events[1].payload.k[0]: 9007199254740993 ${respelled("9007199254740992")}`,
  ],
  ["[-9007199254740993]", [0], `[0]: -9007199254740993 ${respelled("-9007199254740992")}`],
  ["1000000000000000000000", [], `1000000000000000000000 ${respelled("1e+21")}`],
  // binary64 can represent this number, but RFC 8785 writes it differently.
  ["9223372036854775808", [], `9223372036854775808 ${respelled("9223372036854776000")}`],
  ["9223372036854775807", [], `9223372036854775807 ${respelled("9223372036854776000")}`],
  [
    `${"[".repeat(20)}1e999`,
    Array(16).fill(0),
    `${"[0]".repeat(16)}...: 1e999 is too large for a binary64 number; send it as a string`,
  ],
];

test("parseJson() reports the member that violates a rule", () => {
  for (const [text, path, message] of RULE_FAULTS) {
    const fault = faultOf(bytesOf(text));
    assert.equal(fault?.message, message, text);
    assert.deepEqual(fault.path, path, text);
  }
});

test("parseJson() finds malformed UTF-8 unless another error precedes it", () => {
  const cases: [before: string, after: string, message: RegExp][] = [
    ['{"a":["', '"]}', /at byte 7: malformed UTF-8/],
    ["[1,2]", "", /at byte 5: malformed UTF-8/],
    ["[1,2", "]", /at byte 4: malformed UTF-8/],
    ['["\ufffd","\ufffdx', '"]', /at byte 12: malformed UTF-8/],
    ['{"a":1,"a":"', '"}', /appears twice/],
    ['"\\x', '"', /at byte 1: malformed escape/],
  ];
  for (const [before, after, message] of cases) {
    const fault = faultOf(Uint8Array.from([...bytesOf(before), 0xc3, ...bytesOf(after)]));
    assert.match(fault!.message, message, before);
  }
});

test("parseJson() handles a million nesting levels, closed or unclosed", () => {
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

test("parseJson() drops values beyond its depth limit and keeps the rest", () => {
  const nest = (depth: number, inner: string) => "[".repeat(depth) + inner + "]".repeat(depth);
  const deepest = nest(JSON_DEPTH_MAX, "7");
  assert.deepEqual(parseText(deepest), JSON.parse(deepest));
  const tooDeep = nest(JSON_DEPTH_MAX - 1, '{"a]\\"}":{"b":"]"},"c":[[]]},"\\\\[",[{}],[5]');
  const cut = nest(JSON_DEPTH_MAX - 1, '{"a]\\"}":0,"c":0},"\\\\[",[0],[5]');
  assert.deepEqual(parseText(tooDeep), JSON.parse(cut));
});

test("parseJson() finds errors beyond its depth limit", () => {
  const nest = (inner: string) => "[".repeat(1000) + inner + "]".repeat(1000);
  for (const inner of ['{"a":1,"a":2}', "1e999", '"\\ud800"', "9007199254740993", "01"]) {
    assert.throws(() => parseText(nest(inner)), JsonError, inner);
  }
});

test("parseJson() parses a body of the maximum size with any content", () => {
  const filled = (open: string, unit: string, close: string) => {
    const count = Math.floor((INGEST_BODY_BYTES_MAX - open.length - close.length) / unit.length);
    return bytesOf(open + unit.repeat(count) + close);
  };
  assert.equal((parseJson(filled('"', "x", '"')) as string).length, INGEST_BODY_BYTES_MAX - 2);
  assert.equal(parseJson(filled("", " ", "1")), 1);
  assert.throws(() => parseJson(filled("", "1", "")), JsonError);
});
