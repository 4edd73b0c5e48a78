import assert from "node:assert/strict";
import { test } from "node:test";
import { parseQuery } from "../../src/api/query_string.ts";

const KNOWN = new Set(["a", "b c"]);

const GOOD: Array<[query: string, parameters: Record<string, string>]> = [
  ["", {}],
  ["&&", {}],
  ["a=1", { a: "1" }],
  ["a", { a: "" }],
  ["a=", { a: "" }],
  ["a=1&b+c=2", { a: "1", "b c": "2" }],
  ["a=x+y%2Bz", { a: "x y+z" }],
  ["a=1=2", { a: "1=2" }],
  ["%61=1", { a: "1" }],
  ["a=%C3%A9%F0%9F%98%80%00", { a: "é😀\0" }],
];

for (const [query, parameters] of GOOD) {
  test(`parseQuery() reads "${query}"`, () => {
    assert.deepEqual(Object.fromEntries(parseQuery(query, KNOWN)), parameters);
  });
}

const BAD: Array<[fault: string, query: string]> = [
  ["an unknown parameter", "c=1"],
  ["a parameter without a name", "=1"],
  ["a repeated parameter", "a=1&a=1"],
  ["a parameter repeated in another spelling", "a=1&%61=1"],
  ["a cut-off percent-encoding", "a=%2"],
  ["a percent-encoding that is not hexadecimal", "a=%zz"],
  ["bytes that are not UTF-8", "a=%ff"],
  ["an overlong encoding", "a=%C0%80"],
  ["an encoded surrogate", "a=%ED%A0%80"],
  ["a raw character outside ASCII", "a=é"],
];

for (const [fault, query] of BAD) {
  test(`parseQuery() refuses ${fault}`, () => {
    assert.throws(() => parseQuery(query, KNOWN), { code: "invalid_request" });
  });
}
