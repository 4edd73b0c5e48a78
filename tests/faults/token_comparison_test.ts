/**
 * The duration of a token comparison reveals nothing about the token. For any input, two digests of
 * equal length are compared once, in constant time.
 */
import assert from "node:assert/strict";
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { test } from "node:test";
import { createAuthorizer } from "../../src/api/authorization.ts";
import { THIS_RUNTIME } from "../../tools/support/runtimes.ts";
import { skipLoudly } from "./support/skip.ts";

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
  ["the digest of the token", crypto.createHash("sha256").update(TOKEN).digest("hex")],
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

const LENGTH_TITLE = "createAuthorizer() compares two digests of equal length, once, for any input";
test(LENGTH_TITLE, (context) => {
  if (THIS_RUNTIME === "deno") {
    return skipLoudly(context, "Deno's built-ins cannot be patched, but Node runs the same source");
  }
  const { timingSafeEqual } = crypto;
  const lengths: [number, number][] = [];
  crypto.timingSafeEqual = (a, b) => {
    lengths.push([a.byteLength, b.byteLength]);
    return timingSafeEqual(a, b);
  };
  syncBuiltinESMExports();
  try {
    const isAuthorized = createAuthorizer(TOKEN);
    for (const [title, token] of [...WRONG, ["the token", TOKEN]]) {
      lengths.length = 0;
      isAuthorized(`Bearer ${token}`);
      assert.deepEqual(lengths, [[64, 64]], title);
    }
  } finally {
    crypto.timingSafeEqual = timingSafeEqual;
    syncBuiltinESMExports();
  }
});
