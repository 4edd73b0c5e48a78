import assert from "node:assert/strict";
import { test } from "node:test";
import { describeDefect } from "../../src/api/describe_defect.ts";

test("describeDefect() returns the name, message and position on one line", () => {
  class DiskError extends Error {
    override name = "DiskError";
  }
  const text = describeDefect(new DiskError("read failed: EIO\nsecond line"));
  assert.match(text, /^DiskError: read failed: EIO \(describe_defect_test\.ts:\d+:\d+\)$/);
});

test("describeDefect() omits messages that may quote values", () => {
  const faults = [
    () => JSON.parse('{"s3cret" : }'),
    () => Object.defineProperty("s3cret", "a", {}),
    () => "s3cret".repeat(-1),
    () => decodeURIComponent("s3cret%"),
  ];
  for (const fault of faults) {
    assert.throws(fault, (error: Error) => {
      assert.doesNotMatch(describeDefect(error), /s3cret/);
      return describeDefect(error).startsWith(error.name);
    });
  }
});

test("describeDefect() names the type of a thrown non-error", () => {
  assert.equal(describeDefect("s3cret"), "a thrown string");
});
