import assert from "node:assert/strict";
import { test } from "node:test";
import { findJsonFault } from "../../../src/event/json/json_fault.ts";

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

const VALID = [
  "0",
  " null\r\n",
  "[]",
  "{}",
  '{"a":[1,-0.5e+7,"\\ud83d\\ude00",{"a":{}}],"b":true}',
  '{"__proto__":1,"constructor":2,"":3}',
  "[[],[[]],{}]",
  "9007199254740991",
  "-9007199254740991",
  "9007199254740992",
  "100000000000000000000",
  "18446744073709551617.0",
  "1e30",
  "1e-400",
  "-0",
];

test("findJsonFault() finds none in strict JSON", () => {
  for (const text of VALID) assert.equal(findJsonFault(bytesOf(text)), null, text);
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
  ["[1 2]", /unexpected "2"/, 3, [0]],
  ["[1}", /unexpected "}"/, 2, [0]],
  ["]", /unexpected/, 0, []],
  ['{"a":1,}', /unexpected "}"/, 7, ["a"]],
  ['{"a"}', /unexpected "}"/, 4, ["a"]],
  ["{a:1}", /unexpected "a"/, 1, []],
  ['{"a":1]', /unexpected "\]"/, 6, ["a"]],
  ['{"a":1 "b":2}', /unexpected/, 7, ["a"]],
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
  ['{"\u20ac":{"a":1,"b":2,"\\u0061":3}}', /"a" appears twice/, 20, ["\u20ac", "b"]],
  ['{"a":{"x":1},"a":2}', /"a" appears twice/, 13, ["a"]],
  ['{"events":[{},{"payload":{"k":[1e999]}}]}', /too large/, 31, ["events", 1, "payload", "k", 0]],
  ["[9007199254740993]", /can't keep exactly/, 1, [0]],
  ["[-9007199254740993]", /can't keep exactly/, 1, [0]],
  ["1000000000000000000000", /can't keep exactly/, 0, []],
  ["1" + "0".repeat(400), /too large/, 0, []],
];

test("findJsonFault() says what is wrong, where, and in which value", () => {
  for (const [text, message, offsetBytes, path] of FAULTS) {
    const fault = findJsonFault(bytesOf(text));
    assert.ok(fault !== null, text);
    assert.match(fault.message, message, text);
    assert.equal(fault.offsetBytes, offsetBytes, text);
    assert.deepEqual(fault.path, path, text);
  }
});

test("findJsonFault() finds malformed UTF-8, and what comes before it first", () => {
  const broken = (before: string, after: string) =>
    Uint8Array.from([...bytesOf(before), 0xc3, ...bytesOf(after)]);
  const cases: [before: string, after: string, message: RegExp, offsetBytes: number][] = [
    ['{"a":["', '"]}', /malformed UTF-8/, 7],
    ["[1,2]", "", /malformed UTF-8/, 5],
    ["[1,2", "]", /malformed UTF-8/, 4],
    ['{"a":1,"a":"', '"}', /appears twice/, 7],
    ['"a\\', '"', /malformed UTF-8/, 3],
  ];
  for (const [before, after, message, offsetBytes] of cases) {
    const fault = findJsonFault(broken(before, after));
    assert.match(fault!.message, message, before);
    assert.equal(fault!.offsetBytes, offsetBytes, before);
  }
});

test("findJsonFault() bounds what it quotes of the text", () => {
  const name = "n".repeat(100_000);
  const twice = findJsonFault(bytesOf(`{"${name}":1,"${name}":2}`));
  assert.ok(twice!.message.length < 200);
  const number = findJsonFault(bytesOf("1".repeat(100_000)));
  assert.ok(number!.message.length < 200);
});
