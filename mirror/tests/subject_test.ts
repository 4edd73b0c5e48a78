/** NATS subjects for events. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { subjectOf, subjectToken } from "../nats/subject.ts";

const TOKENS: [string, string][] = [
  ["orders", "orders"],
  ["a.b", "a%2Eb"],
  ["a%2Eb", "a%252Eb"],
  ["$JS~!'()", "%24JS%7E%21%27%28%29"],
  ["tab\tline\r\n", "tab%09line%0D%0A"],
  ["Zoë€\u{1f600}", "Zo%C3%AB%E2%82%AC%F0%9F%98%80"],
];
for (const [name, token] of TOKENS) {
  test(`subjectToken() encodes ${JSON.stringify(name)} reversibly as ${token}`, () => {
    assert.equal(subjectToken(name), token);
    assert.equal(decodeURIComponent(token), name);
  });
}

test("subjectOf() distinguishes names that contain dots", () => {
  assert.equal(subjectOf("ground", { source: "a.b", stream: "c" }), "ground.a%2Eb.c");
  assert.equal(subjectOf("ground", { source: "a", stream: "b.c" }), "ground.a.b%2Ec");
});
