import assert from "node:assert/strict";
import { test } from "node:test";
import { findUnusedExports } from "../../../tools/tidy/unused_exports.ts";

const MODULE = `export function first() {}
export async function second() {}
export const THIRD = 1;
export class Fourth {}
export function* fifth() {}
export interface Sixth {}
`;
const ALL = ["first", "second", "THIRD", "Fourth", "fifth"];

const USERS: [user: string, unused: string[]][] = [
  ["", ALL],
  [
    'import { first, type Sixth, THIRD as x } from "./src/a.ts";',
    ["second", "Fourth", "fifth"],
  ],
  ['export {\n  Fourth,\n} from "./src/a.ts";', ["first", "second", "THIRD", "fifth"]],
  ['export * from "./src/a.ts";', []],
  ['import * as a from "./src/a.ts";', []],
  ['const { first } = await import("./src/a.ts");', []],
  ['import { first } from "./src/b.ts";', ALL],
];

test("findUnusedExports() finds exports that no other file imports", () => {
  for (const [user, unused] of USERS) {
    const texts: Record<string, string> = { "src/a.ts": MODULE, "user.ts": user };
    const found = findUnusedExports(Object.keys(texts), (path) => texts[path]!);
    assert.deepEqual(found.map((line) => /exports (\w+)/.exec(line)![1]), unused, user);
  }
});
