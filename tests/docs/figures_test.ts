/** `docs/performance.md` is the source of measured rates; the README quotes them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const ROOT = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), "utf8");

/** A rate in a table cell. */
const RATE = /(?<=\| +)\d{1,3}(,\d{3})+(?= \|)/g;

test("README's rates are those in docs/performance.md", () => {
  const [, section] = read("README.md").split(/^## How fast$/m);
  const quoted = section!.split(/^## /m)[0]!.match(RATE) ?? [];
  const measured = new Set(read("docs/performance.md").match(RATE));
  assert.ok(quoted.length > 0);
  for (const rate of quoted) assert.ok(measured.has(rate), rate);
});
