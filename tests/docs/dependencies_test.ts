/** `docs/dependencies.md` lists every dependency with the license that its package states. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

const ROOT = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), "utf8");
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
