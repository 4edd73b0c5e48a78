import assert from "node:assert/strict";
import { test } from "node:test";
import { describeError } from "../../../src/log/storage/system_error.ts";

test("describeError() gives the advice for the error that caused another one", () => {
  const cause = Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
  const error = new Error("sealing failed", { cause: new Error("not rotated", { cause }) });
  for (const told of [cause, error.cause, error]) {
    assert.match(describeError(told), /; raise the limit on open files$/);
  }
  assert.equal(describeError(new Error("a\n  b", { cause: "c" })), "a b");
});
