import assert from "node:assert/strict";
import { test } from "node:test";
import {
  findCycles,
  findFullFolders,
  findInnerImports,
  findWrongLogLayers,
} from "../../../tools/tidy/layers.ts";

/** A source tree of files that import one another. */
function treeOf(imports: Record<string, string[]>) {
  const read = (path: string) =>
    imports[path]!.map((specifier) => `import { a } from "${specifier}";\n`).join("");
  return { files: Object.keys(imports), read };
}

test("findWrongLogLayers() finds upward imports and directories that are not layers", () => {
  const { files, read } = treeOf({
    "src/log/log.ts": ["./segment/a.ts", "../event/a.ts"],
    "src/log/segment/a.ts": ["../storage/a.ts", "./b.ts", "../../event/a.ts"],
    "src/log/segment/b.ts": ["../sealing/a.ts", "../log.ts"],
    "src/log/cellar/a.ts": [],
    "src/event/a.ts": [],
  });
  assert.deepEqual(findWrongLogLayers(files, read), [
    "src/log/segment/b.ts: imports src/log/sealing/a.ts, against the layer order",
    "src/log/segment/b.ts: imports src/log/log.ts, against the layer order",
    "src/log/cellar/a.ts: its directory is not a layer listed in tools/tidy/layers.ts",
  ]);
});

test("findFullFolders() counts the files in each directory of src/ separately", () => {
  const files = Array.from({ length: 26 }, (_, n) => `src/a/${n}.ts`);
  assert.deepEqual(findFullFolders([...files, "src/a/b/0.ts"]), ["src/a: 26 files, at most 25"]);
  assert.deepEqual(findFullFolders([...files.slice(1), "tests/a.ts"]), []);
});

test("findCycles() reports each cycle once and does not follow worker modules", () => {
  const { files, read } = treeOf({
    "src/d.ts": ["./a.ts"],
    "src/c.ts": ["./a.ts"],
    "src/b.ts": ["./c.ts"],
    "src/a.ts": ["./b.ts"],
    "src/thread.ts": [],
    "src/worker.ts": ["./thread.ts"],
  });
  const withThread = (path: string) =>
    path === "src/thread.ts" ? 'new URL("./worker.ts", import.meta.url)' : read(path);
  assert.deepEqual(findCycles(files, withThread), [
    "src/a.ts: import cycle: src/a.ts -> src/b.ts -> src/c.ts -> src/a.ts",
  ]);
});

test("findInnerImports() finds undocumented imports of a package's internals", () => {
  const { files, read } = treeOf({ "src/a.ts": ["p/src/x.js", "p/src/y.js", "p", "node:fs"] });
  const list = "\n| `p/src/x.js` | it is quicker |";
  assert.deepEqual(findInnerImports(files, read, list), [
    "src/a.ts: imports p/src/y.js without a reason in docs/dependencies.md",
  ]);
});
