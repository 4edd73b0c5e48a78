/** Links between documents resolve, and every document is reachable from the README. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDERS = ["", "docs", "bench", "examples", "tests/contract", "tests/faults"];
const DOCUMENTS = FOLDERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder)).filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name))
);

interface Link {
  from: string;
  to: string;
  anchor: string;
}

function textOf(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

function linksOf(from: string): Link[] {
  const prose = textOf(from).replaceAll(/^```.*?^```$/gms, "");
  return [...prose.matchAll(/\]\(([^)#\s]*)(?:#([^)\s]+))?\)/g)]
    .filter(([, target]) => !/^[a-z]+:/.test(target!))
    .map(([, target, anchor]) => ({
      from,
      to: target === "" ? from : normalize(join(dirname(from), target!)),
      anchor: anchor ?? "",
    }));
}

/** The anchors that GitHub generates for a document's headings. */
function anchorsOf(path: string): string[] {
  const headings = [...textOf(path).matchAll(/^#+ (.+)$/gm)].map((match) => match[1]!);
  return headings.map((heading) =>
    heading.toLowerCase().replaceAll(/[^\w\s-]/g, "").replaceAll(" ", "-")
  );
}

const links = DOCUMENTS.flatMap(linksOf);

test("every link between documents points to an existing file and heading", () => {
  for (const { from, to, anchor } of links) {
    assert.ok(existsSync(join(ROOT, to)), `${from}: no ${to}`);
    if (anchor !== "") assert.ok(anchorsOf(to).includes(anchor), `${from}: no ${to}#${anchor}`);
  }
});

/** Names of all files in the repository, without their directories. */
const NAMES = new Set(
  ["src", "mirror", "tests", "tools", "bench", "examples", "docs"].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true }).map((path) => basename(String(path)))
  ),
);

test("every file named in a document exists", () => {
  for (const path of DOCUMENTS) {
    for (
      const [, named] of textOf(path).matchAll(
        /`((?:src|mirror|tests|tools|bench|examples|docs)\/[\w./-]+)`/g,
      )
    ) {
      assert.ok(existsSync(join(ROOT, named!)), `${path}: no ${named}`);
    }
    for (const [, name] of textOf(path).matchAll(/`(?:\w+\/)?(\w+\.ts)`/g)) {
      assert.ok(NAMES.has(name!) || existsSync(join(ROOT, name!)), `${path}: no ${name}`);
    }
  }
});

test("every document is reachable from the README", () => {
  const reached = new Set(["README.md"]);
  for (const path of reached) {
    for (const { to } of links.filter(({ from }) => from === path)) {
      if (DOCUMENTS.includes(to)) reached.add(to);
      // A link to a directory opens its README.
      if (DOCUMENTS.includes(join(to, "README.md"))) reached.add(join(to, "README.md"));
    }
  }
  assert.deepEqual(DOCUMENTS.filter((path) => !reached.has(path)), []);
});
