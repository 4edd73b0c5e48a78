/** Tokens that are almost right, given to the authorizer. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import { createAuthorizer } from "../../src/api/authorization.ts";

const TOKEN = "s3cret-token";

/** Wrong tokens as header values, which have one character per byte. */
const WRONG: [title: string, token: string][] = [
  ["nothing", ""],
  ["a space", " "],
  ["a prefix", TOKEN.slice(0, -1)],
  ["one more character", `${TOKEN}x`],
  ["one more space", `${TOKEN} `],
  ["twice the token", TOKEN + TOKEN],
  ["a different case", TOKEN.toUpperCase()],
  ["a much longer token", "x".repeat(60_000)],
  ["a trailing NUL", `${TOKEN}\0`],
  ["bytes outside ASCII", "s\u00c3\u00a9cret-token"],
  ["characters above U+00FF", "\u0173\u0133\u0163\u0172\u0165\u0174"],
  ["an unpaired surrogate", "\ud800"],
  ["the digest of the token", hash("sha256", TOKEN)],
  ...[...TOKEN].map((character, place): [string, string] => [
    `a different character at ${place}`,
    TOKEN.slice(0, place) + String.fromCharCode(character.charCodeAt(0) ^ 1) +
    TOKEN.slice(place + 1),
  ]),
];

test("createAuthorizer() rejects every near miss of the token", () => {
  const isAuthorized = createAuthorizer(TOKEN);
  assert.ok(isAuthorized(`Bearer ${TOKEN}`));
  for (const [title, token] of WRONG) assert.ok(!isAuthorized(`Bearer ${token}`), title);
});
