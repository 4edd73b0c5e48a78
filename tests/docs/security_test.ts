/** The bounds in `SECURITY.md` are those of the program. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as limits from "../../src/limits.ts";

const TEXT = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
const UNITS: Record<string, number> = { "": 1, s: 1000, KiB: 2 ** 10, MiB: 2 ** 20 };

test("SECURITY.md states the values of the constants that it names", () => {
  const rows = [...TEXT.matchAll(/^\| `([A-Z_]+)` +\| ([\d,]+) ?(\w*) +\|/gm)];
  assert.ok(rows.length > 20);
  for (const [, name, number, unit] of rows) {
    const value = (limits as Record<string, unknown>)[name!];
    assert.equal(Number(number!.replaceAll(",", "")) * UNITS[unit!]!, value, name);
  }
  const known = new Set(rows.map(([, name]) => name));
  for (const [, name] of TEXT.matchAll(/`([A-Z]+_[A-Z_]+MAX)`/g)) assert.ok(known.has(name), name);
});
