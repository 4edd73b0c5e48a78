import assert from "node:assert/strict";
import { test } from "node:test";
import { describeDefect } from "../../src/api/describe_defect.ts";

test("describeDefect() returns name, message and position in one line", () => {
  class DiskError extends Error {
    override name = "DiskError";
  }
  const text = describeDefect(new DiskError("read failed: EIO\nsecond line"));
  assert.match(text, /^DiskError: read failed: EIO \(describe_defect_test\.ts:\d+:\d+\)$/);
});

test("describeDefect() omits messages that may quote values", () => {
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
    assert.doesNotMatch(describeDefect(error), /s3cret/);
    assert.ok(describeDefect(error).startsWith(error.name));
  }
});

test("describeDefect() names the type of a thrown non-error", () => {
  assert.equal(describeDefect("s3cret"), "a thrown string");
});
