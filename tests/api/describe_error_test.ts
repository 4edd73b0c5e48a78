import assert from "node:assert/strict";
import { test } from "node:test";
import { describeError } from "../../src/api/describe_error.ts";

test("describeError() gives name, message and place in one line", () => {
  class DiskError extends Error {
    override name = "DiskError";
  }
  const text = describeError(new DiskError("read failed: EIO\nsecond line"));
  assert.match(text, /^DiskError: read failed: EIO \(describe_error_test\.ts:\d+:\d+\)$/);
});

test("describeError() leaves out messages that quote the values at hand", () => {
  const thrown = (run: () => unknown): unknown => {
    try {
      return run();
    } catch (error) {
      return error;
    }
  };
  const errors = [
    thrown(() => JSON.parse('{"s3cret" : }')),
    thrown(() => Object.defineProperty("s3cret", "a", {})),
    thrown(() => "s3cret".repeat(-1)),
    thrown(() => decodeURIComponent("s3cret%")),
  ];
  for (const error of errors) {
    assert.ok(error instanceof Error);
    assert.doesNotMatch(describeError(error), /s3cret/);
    assert.ok(describeError(error).startsWith(error.name));
  }
});

test("describeError() names the type of what is no error", () => {
  assert.equal(describeError("s3cret"), "a thrown string");
});
