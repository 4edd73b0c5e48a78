import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { findUntidy } from "../../tools/tidy.ts";
import { withFolder } from "../../tools/support/program.ts";

test("findUntidy() finds nothing in this tree", () => {
  assert.deepEqual(findUntidy(fileURLToPath(new URL("../..", import.meta.url))), []);
});

/** A tidy source tree. */
const TREE: Record<string, string> = {
  "deno.json": '{"version":"1.0.0","license":"MIT","imports":{"a":"npm:a@1.2.3"}}',
  "package.json": '{"version":"1.0.0","license":"MIT","dependencies":{"a":"1.2.3"}}',
  "docs/dependencies.md": "\n| `a` | MIT |\n",
  "cli.ts": 'import { run } from "./src/commands/run.ts";\nrun();\n',
  "src/commands/run.ts": 'import "../event/names.ts";\nexport const run = () => {};\n',
  "src/event/names.ts": "",
};

// Split into parts so that this file itself stays tidy.
const LATER = "TO" + "DO";
const RUNTIME = "De" + "no.cwd()";
const ENDING = "process.ex" + "it(0);";

/** Names of modules that fill a folder together with another one. */
const NAMES = Array.from({ length: 25 }, (_, n) => `n${n}`);

const FAULTS: [title: string, changed: Record<string, string>, found: RegExp | null][] = [
  ["nothing", {}, null],
  [
    "a long line",
    { "src/event/names.ts": `// ${"x".repeat(100)}` },
    /:1: 103 columns, at most 100/,
  ],
  ["a long file", { "src/event/names.ts": "\n".repeat(450) }, /names\.ts: 451 lines, at most 450/],
  ["unfinished work", { "cli.ts": `${TREE["cli.ts"]}// ${LATER}` }, /:3: unfinished/],
  [
    "an extra exit",
    { "cli.ts": `${TREE["cli.ts"]}${ENDING}` },
    /:3: ends the process/,
  ],
  ["a runtime's name", { "src/event/names.ts": RUNTIME }, /names\.ts: names a runtime/],
  [
    "an upward import",
    { "src/event/names.ts": 'import "../log/log.ts";', "src/log/log.ts": "" },
    /against the layer order/,
  ],
  [
    "an import cycle",
    { "src/event/names.ts": 'import "./more.ts";', "src/event/more.ts": 'import "./names.ts";' },
    /import cycle: src\/event\/(\w+)\.ts -> /,
  ],
  [
    "a full folder",
    {
      ...Object.fromEntries(NAMES.map((name) => [`src/event/${name}.ts`, ""])),
      "src/event/names.ts": NAMES.map((name) => `import "./${name}.ts";\n`).join(""),
    },
    /src\/event: 26 files, at most 25/,
  ],
  ["an awaiting module", { "src/event/names.ts": "await 0;" }, /names\.ts:1: awaits at the top/],
  ["a dead file", { "src/event/dead.ts": "" }, /dead\.ts: only tests import it/],
  ["an unused export", { "src/event/names.ts": "export const x = 1;" }, /names\.ts: exports x/],
  ["two versions of a package", {
    "deno.json": TREE["deno.json"]!.replace("1.2.3", "1.2.4"),
  }, /a: deno\.json has 1\.2\.4, package\.json has 1\.2\.3/],
  ["a version range", {
    "deno.json": TREE["deno.json"]!.replace("1.2.3", "^1.2.3"),
    "package.json": TREE["package.json"]!.replace("1.2.3", "^1.2.3"),
  }, /a: \^1\.2\.3 is not an exact version/],
  ["an unlisted package", { "docs/dependencies.md": "" }, /has no entry for a/],
];

for (const [title, changed, found] of FAULTS) {
  test(`findUntidy() in a tree with ${title} finds ${found?.source ?? "nothing"}`, () =>
    withFolder(async (root) => {
      for (const [path, text] of Object.entries({ ...TREE, ...changed })) {
        await mkdir(dirname(join(root, path)), { recursive: true });
        await writeFile(join(root, path), text);
      }
      const faults = findUntidy(root);
      if (found === null) return assert.deepEqual(faults, []);
      assert.equal(faults.length, 1, faults.join("\n"));
      assert.match(faults[0]!, found);
    }));
}
