import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as whole from "../mod.ts";
import * as browserPart from "../event.ts";

/** All modules that a module loads, including itself. Imports of packages are kept as written. */
function moduleGraph(url: URL, seen: Set<string> = new Set()): Set<string> {
  if (seen.has(url.href)) return seen;
  seen.add(url.href);
  for (const [, specifier] of withoutTypes(url).matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)) {
    if (specifier!.startsWith(".")) moduleGraph(new URL(specifier!, url), seen);
    else seen.add(specifier!);
  }
  return seen;
}

/** Source code without comments or type-only imports and exports. */
function withoutTypes(url: URL): string {
  return readFileSync(url, "utf8")
    .replace(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "")
    .replace(/^(?:import|export) type [^;]*;/gm, "");
}

test("event.ts loads only its own modules, which use no runtime-specific modules or globals", () => {
  const graph = moduleGraph(new URL("../event.ts", import.meta.url));
  assert(graph.size > 1);
  for (const module of graph) {
    assert.match(module, /^file:.*\/(?:event|src\/.+)\.ts$/);
    assert.doesNotMatch(
      withoutTypes(new URL(module)),
      /node:|npm:|\b(?:process|Buffer|Deno|require|global)\b/,
      module,
    );
  }
});

test("mod.ts exports everything that event.ts exports", () => {
  for (const [name, value] of Object.entries(browserPart)) {
    assert.equal(whole[name as keyof typeof whole], value, name);
  }
});
