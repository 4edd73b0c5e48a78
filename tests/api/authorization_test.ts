import assert from "node:assert/strict";
import { test } from "node:test";
import { createAuthorizer } from "../../src/api/authorization.ts";

const GOOD = ["Bearer s3cret", "bearer s3cret", "BEARER   s3cret"];
const BAD = [
  null,
  "",
  "Bearer",
  "Bearer ",
  "s3cret",
  "Basic s3cret",
  "Bearer s3cre",
  "Bearer s3cret1",
  "Bearer S3cret",
  "Bearer\ts3cret",
  "Bearer s3cret, Bearer s3cret",
  " Bearer s3cret",
];

test("createAuthorizer() accepts the token, whatever the case of the scheme", () => {
  const isAuthorized = createAuthorizer("s3cret");
  for (const value of GOOD) assert.ok(isAuthorized(value), value);
});

test("createAuthorizer() accepts nothing else", () => {
  const isAuthorized = createAuthorizer("s3cret");
  for (const value of BAD) assert.ok(!isAuthorized(value), String(value));
});

test("createAuthorizer() compares a non-ASCII token by its bytes in UTF-8", () => {
  assert.ok(createAuthorizer("clé")("Bearer cl\u00c3\u00a9"));
});

test("createAuthorizer() accepts everything when the token is empty", () => {
  const isAuthorized = createAuthorizer("");
  for (const value of [...GOOD, ...BAD]) assert.ok(isAuthorized(value));
});
