/**
 * Compares tests/faults/catalogue.md with the tests: numbers are unique, no fault is listed twice,
 * every cited test and case exists, and every test in this directory is cited.
 *
 * An entry is `- **number** where: fault`, then indented list items: what must hold, and one or
 * more citations `file › title` or `file › title › case`. In a title, `…` stands for an inserted
 * value, and a trailing seed is omitted. A case is a string or property name in the test file or in
 * a test helper that it imports.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CATALOGUE = "tests/faults/catalogue.md";
const FAULT_TESTS = "tests/faults";

interface Entry {
  number: string;
  /** The location and the fault. */
  fault: string;
  citations: string[];
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

/** The head, the expectation and the citations. */
const ENTRY =
  /^\*\*([1-9]\d*)\*\* (.+: .+)\n {2}- (?!`(?:tests|examples)\/).+\n((?: {2}- `\S+ › .+`\n)+)\n*$/;

/** @throws {AssertionError} if an entry lacks a location, an expectation or a test. */
function parseEntry(text: string): Entry {
  const [, number, fault, tests] = ENTRY.exec(text) ?? [];
  const form = "- **number** where: fault\n  - expectation\n  - `file › title`";
  assert.ok(number && fault && tests, `an entry must read\n${form}\nnot\n${text}`);
  const citations = [...tests.matchAll(/^ {2}- `(.+)`$/gm)].map(([, citation]) => citation!);
  return { number, fault, citations };
}

/** The sections after the introduction, which only shows the format of an entry. */
const SECTIONS = read(CATALOGUE).split(/^## .*\n/m).slice(1);
const ENTRIES: Entry[] = SECTIONS.flatMap((section) =>
  section.split(/^- (?=\*\*)/m).slice(1).map(parseEntry)
);

const STRING = /"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/.source;
const TEST_CALL = new RegExp(`(?<![.\\w])test\\w*\\(\\s*(?:(${STRING})|(\\w+)\\s*,)`, "g");

/** Titles of the tests in a file, in the form that the catalogue cites. */
function titlesIn(path: string): string[] {
  const source = read(path);
  const titles = [...source.matchAll(TEST_CALL)].flatMap(([, literal, name]) => {
    if (literal !== undefined) return titleOf(literal);
    const constant = new RegExp(`const ${name} =\\s*(${STRING});`).exec(source)?.[1];
    if (constant !== undefined) return titleOf(constant);
    // The title is a parameter of a helper in this file.
    assert.match(source, new RegExp(`\\(${name}: string\\b`), `${path}: ${name} must be a string`);
    return [];
  });
  assert.ok(titles.length > 0, `${path} has no test with a string as its title`);
  return titles;
}

function titleOf(literal: string): string {
  return literal.slice(1, -1)
    .replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, "…")
    .replace(/ \(\w*seed[ =]…\)$/i, "")
    .replaceAll(/\\(["`])/g, "$1");
}

/** The contents of a test file and of all test helpers that it imports. */
function withImports(path: string, seen: Set<string> = new Set()): string {
  if (seen.has(path) || !existsSync(join(ROOT, path))) return "";
  seen.add(path);
  const source = read(path);
  const imported = [...source.matchAll(/(?:from|import) "(\.[^"]+)"/g)]
    .map((match) => join(path, "..", match[1]!))
    .filter((target) => /^(?:tests|examples)\//.test(target));
  return [source, ...imported.map((target) => withImports(target, seen))].join("\n");
}

function hasCase(source: string, caseName: string): boolean {
  const spellings = [`"${caseName}"`, `'${caseName}'`, "`" + caseName + "`", `  ${caseName}: `];
  return spellings.some((spelling) => source.includes(spelling));
}

/** Fails with one line per problem. Each line says how to fix the problem. */
function assertNone(faults: readonly string[]): void {
  assert.ok(faults.length === 0, `${CATALOGUE}:\n${faults.join("\n")}`);
}

/** Items that already occurred earlier in the list, each with advice. */
function repeated(items: readonly string[], advice: string): string[] {
  const again = items.filter((item, index) => items.indexOf(item) < index);
  return again.map((item) => `${advice}: ${item}`);
}

test("tests/faults/catalogue.md: every entry has a unique number, a fault and citations", () => {
  const numbers = ENTRIES.map(({ number }) => number);
  const next = Math.max(...numbers.map(Number)) + 1;
  const faults = ENTRIES.map(({ fault }) => fault.toLowerCase());
  assertNone([
    ...repeated(numbers, `two entries have a number; the next free number is ${next}`),
    ...repeated(faults, "remove one of two entries, or say what differs"),
    ...ENTRIES.flatMap(({ number, citations }) =>
      repeated(citations, `entry ${number} cites a test twice; remove one`)
    ),
  ]);
});

test("tests/faults/catalogue.md: every cited test and case exists", () => {
  assertNone(
    ENTRIES.flatMap(({ number, citations }) =>
      citations.map(missing).filter((what) => what !== null).map((what) =>
        `entry ${number}: ${what}`
      )
    ),
  );
});

/** Says what a citation lacks, or returns null. */
function missing(citation: string): string | null {
  const [path, title, ...rest] = citation.split(" › ") as [string, string, ...string[]];
  if (!existsSync(join(ROOT, path))) return `no file ${path}; cite the current file of the test`;
  if (!titlesIn(path).includes(title)) return `${path} has no test "${title}"; cite its title`;
  const caseName = rest.join(" › ");
  if (caseName === "" || hasCase(withImports(path), caseName)) return null;
  return `${path} has no case "${caseName}"; cite its current name`;
}

test("tests/faults/catalogue.md: every test in tests/faults is cited", () => {
  const cited = new Set(
    ENTRIES.flatMap(({ citations }) =>
      citations.map((citation) => citation.split(" › ").slice(0, 2).join(" › "))
    ),
  );
  const uncited = readdirSync(join(ROOT, FAULT_TESTS))
    .filter((name) => name.endsWith("_test.ts") && name !== "fault_catalogue_test.ts")
    .map((name) => `${FAULT_TESTS}/${name}`)
    .flatMap((path) => titlesIn(path).map((title) => `${path} › ${title}`))
    .filter((citation) => !cited.has(citation));
  assertNone(uncited.map((citation) => `add an entry that cites \`${citation}\``));
});
