/** Facts that documents state: they are those of the program, its packages and each other. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import * as limits from "../../src/limits.ts";

const ROOT = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), "utf8");

test("docs/hacking.md lists exactly the tasks in deno.json", () => {
  const listed = [...read("docs/hacking.md").matchAll(/^\| `deno task ([\w:-]+)/gm)];
  const names = listed.map((match) => match[1]!).sort();
  assert.deepEqual(names, Object.keys(JSON.parse(read("deno.json")).tasks).sort());
});

/** A rate in a table cell. */
const RATE = /(?<=\| +)\d{1,3}(,\d{3})+(?= \|)/g;

test("README's rates are those in docs/performance.md", () => {
  const [, section] = read("README.md").split(/^## How fast$/m);
  const quoted = section!.split(/^## /m)[0]!.match(RATE) ?? [];
  const measured = new Set(read("docs/performance.md").match(RATE));
  assert.ok(quoted.length > 0);
  for (const rate of quoted) assert.ok(measured.has(rate), rate);
});

const SECURITY = read("SECURITY.md");
const UNITS: Record<string, number> = { "": 1, s: 1000, KiB: 2 ** 10, MiB: 2 ** 20 };

test("SECURITY.md states the values of the constants that it names", () => {
  const rows = [...SECURITY.matchAll(/^\| `([A-Z_]+)` +\| ([\d,]+) ?(\w*) +\|/gm)];
  assert.ok(rows.length > 20);
  for (const [, name, number, unit] of rows) {
    const value = (limits as Record<string, unknown>)[name!];
    assert.equal(Number(number!.replaceAll(",", "")) * UNITS[unit!]!, value, name);
  }
  const known = new Set(rows.map(([, name]) => name));
  for (const [, name] of SECURITY.matchAll(/`([A-Z]+_[A-Z_]+MAX)`/g)) {
    assert.ok(known.has(name), name);
  }
});

const { dependencies, devDependencies } = JSON.parse(read("package.json"));
const mirror = JSON.parse(read("mirror/package.json"));

/** The names and licenses in a section's table. */
function listedIn(heading: string): [name: string, licence: string][] {
  const section = read("docs/dependencies.md").split(/^## /m).find((text) =>
    text.startsWith(`${heading}\n`)
  );
  assert.ok(section !== undefined, `no section ${heading}`);
  return [...section.matchAll(/^\| `([^`]+)` +\| ([^|]+?) +\| \S/gm)].map(([, name, licence]) => [
    name!,
    licence!,
  ]);
}

const SECTIONS: [heading: string, packages: Record<string, string>][] = [
  ["In the program", dependencies],
  [
    "In the mirror",
    Object.fromEntries(
      // Its package also contains the program's modules, with their dependencies.
      Object.entries<string>(mirror.dependencies).filter(([name]) => !(name in dependencies)),
    ),
  ],
  ["In builds, tests, benchmarks and examples", devDependencies],
];

for (const [heading, packages] of SECTIONS) {
  test(`the dependencies listed under "${heading}" match package.json`, () => {
    const names = listedIn(heading).map(([name]) => name).sort();
    assert.deepEqual(names, Object.keys(packages).sort());
  });

  test(`the licenses listed under "${heading}" are those that the packages state`, (context) => {
    for (const [name, licence] of listedIn(heading)) {
      const path = `node_modules/${name}/package.json`;
      if (!existsSync(new URL(path, ROOT))) return context.skip(`no ${path}: run npm ci`);
      assert.equal(JSON.parse(read(path)).license, licence, name);
    }
  });
}
