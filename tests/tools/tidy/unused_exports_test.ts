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

const USERS: [title: string, user: string, unused: string[]][] = [
  ["nobody", "", ALL],
  ["an import", 'import { first, type Sixth, THIRD as x } from "./src/a.ts";', [
    "second",
    "Fourth",
    "fifth",
  ]],
  ["an import over several lines", 'import {\n  first,\n  second,\n} from "./src/a.ts";', [
    "THIRD",
    "Fourth",
    "fifth",
  ]],
  ["a re-export", 'export { Fourth } from "./src/a.ts";', ["first", "second", "THIRD", "fifth"]],
  ["a re-export of all", 'export * from "./src/a.ts";', []],
  ["a namespace", 'import * as a from "./src/a.ts";', []],
  ["an import that is made later", 'const { first } = await import("./src/a.ts");', []],
  ["an import from elsewhere", 'import { first } from "./src/b.ts";', ALL],
];

for (const [title, user, unused] of USERS) {
  test(`findUnusedExports() with ${title} finds ${unused.join(", ") || "none"}`, () => {
    const texts: Record<string, string> = { "src/a.ts": MODULE, "user.ts": user };
    const found = findUnusedExports(Object.keys(texts), (path) => texts[path]!);
    assert.deepEqual(found.map((line) => /exports (\w+)/.exec(line)![1]), unused);
  });
}
