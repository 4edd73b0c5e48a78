import assert from "node:assert/strict";
import { test } from "node:test";
import { checkMediaType } from "../../src/api/media_type.ts";
import { stubRequest } from "../support/stub_request.ts";

const GOOD = [
  "application/json",
  "Application/JSON",
  "application/json;charset=utf-8",
  "application/json; charset=UTF-8",
  'application/json ;\tCHARSET="utf-8"',
  "application/json;",
  "application/json; ; charset=utf-8 ;",
];
const BAD = [
  "",
  "text/plain",
  "application/json5",
  "application/x-ndjson",
  "application/json, application/json",
  "application/json; charset=latin1",
  "application/json; charset=utf8",
  "application/json; charset = utf-8",
  "application/json; charset='utf-8'",
  'application/json; charset="utf-8',
  "application/json; profile=x",
  "application/json; charset=utf-8; v=1",
  "application/json\u00a0",
];

test("checkMediaType() accepts a request without a content type", () => {
  checkMediaType(stubRequest());
});

for (const type of GOOD) {
  test(`checkMediaType() accepts ${type}`, () => {
    checkMediaType(stubRequest({ headers: { "content-type": type } }));
  });
}

for (const type of BAD) {
  test(`checkMediaType() refuses "${type}"`, () => {
    const request = stubRequest({ headers: { "content-type": type } });
    assert.throws(() => checkMediaType(request), { code: "unsupported_media_type" });
  });
}

for (const encoding of ["gzip", "identity", ""]) {
  test(`checkMediaType() refuses the content encoding "${encoding}"`, () => {
    const request = stubRequest({ headers: { "content-encoding": encoding } });
    assert.throws(() => checkMediaType(request), { code: "unsupported_media_type" });
  });
}
