import assert from "node:assert/strict";
import { test } from "node:test";
import { isAlike, missingLine } from "./support/loose_output.ts";

const HASH = "ab".repeat(32);
const ID = "019b76da-a800-7001-8203-040506070809";

const LINES: [shown: string, output: string, missing: string | null][] = [
  ["serving <path>", "hello\nserving /tmp/x\n", null],
  ["sealed 5 events", "sealed 17 events", null],
  [`head ${HASH}`, `head ${"cd".repeat(32)}`, null],
  [`head ${HASH}`, "head cdcd", `head ${HASH}`],
  [`after event ${ID}`, `after event ${ID.replace("a", "b")}`, null],
  ["a\nb", "b\na", "b"],
  ["a (b)", "a b", "a (b)"],
  ["disk … ok", "disk ext4 is ok", null],
  ["12 things", "things", "12 things"],
];

for (const [shown, output, missing] of LINES) {
  test(`missingLine() of ${JSON.stringify(shown)} in ${JSON.stringify(output)}`, () => {
    assert.equal(missingLine(shown, output), missing);
  });
}

const VALUES: [shown: unknown, got: unknown, alike: boolean][] = [
  [{ id: ID, n: 1 }, { n: 1, id: ID.replaceAll("0", "1") }, true],
  [{ at: "2026-01-31T00:00:00Z" }, { at: "2027-01-31T00:00:00.123Z" }, true],
  [{ head: HASH }, { head: "x" }, false],
  [{ n: 1 }, { n: 2 }, false],
  [{ n: 1 }, { n: 1, m: 1 }, false],
  [[1], [1, 2], false],
  [null, {}, false],
  ["shop", "shop", true],
];

for (const [shown, got, alike] of VALUES) {
  const title = `${JSON.stringify(shown)}, ${JSON.stringify(got)}`;
  test(`isAlike() of ${title} is ${alike}`, () => {
    assert.equal(isAlike(shown, got), alike);
  });
}
