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

interface Citation {
  path: string;
  title: string;
  caseName: string | undefined;
}

interface Entry {
  number: number;
  /** The location and the fault. */
  fault: string;
  citations: Citation[];
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

/** @throws {AssertionError} if an entry lacks a location, an expectation or a test. */
function parseEntry(text: string): Entry {
  const [head, holds, ...tests] = text.trimEnd().split("\n");
  const [, number, fault] = /^\*\*([1-9]\d*)\*\* (.+: .+)$/.exec(head!) ?? [];
  assert.ok(number && fault, `an entry must read "- **number** where: fault": ${head}`);
  assert.match(
    holds ?? "",
    /^ {2}- (?!`(?:tests|examples)\/)/,
    `entry ${number} needs an expectation`,
  );
  assert.ok(tests.length > 0, `entry ${number} needs a citation \`file › title\``);
  const citations = tests.map((line) => {
    const citation = /^ {2}- `(.+)`$/.exec(line)?.[1];
    assert.ok(citation, `entry ${number} must have one \`file › title\` per line, not: ${line}`);
    return parseCitation(citation);
  });
  return { number: Number(number), fault, citations };
}

function parseCitation(text: string): Citation {
  const [path, title, ...rest] = text.split(" › ");
  assert.ok(
    path && title,
    `a citation must read \`file › title\` or \`file › title › case\`: ${text}`,
  );
  return { path, title, caseName: rest.length === 0 ? undefined : rest.join(" › ") };
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
  return [...source.matchAll(TEST_CALL)].flatMap(([, literal, name]) => {
    if (literal !== undefined) return titleOf(literal);
    const constant = new RegExp(`const ${name} =\\s*(${STRING});`).exec(source)?.[1];
    if (constant !== undefined) return titleOf(constant);
    // The title is a parameter of a helper in this file.
    assert.match(source, new RegExp(`\\(${name}: string\\b`), `${path}: ${name} must be a string`);
    return [];
  });
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

/** Items that already occurred earlier in the list. */
function repeated<T>(items: readonly T[]): T[] {
  return items.filter((item, index) => items.indexOf(item) < index);
}

/** Fails with one line per problem. Each line says how to fix the problem. */
function assertNone(faults: readonly string[]): void {
  assert.ok(faults.length === 0, `${CATALOGUE}:\n${faults.join("\n")}`);
}

test("tests/faults/catalogue.md: every entry has a unique number, a fault and citations", () => {
  const numbers = ENTRIES.map(({ number }) => number);
  const next = Math.max(...numbers) + 1;
  const faults = ENTRIES.map(({ fault }) => fault.toLowerCase());
  const cited = ENTRIES.flatMap(({ number, citations }) =>
    repeated(citations.map(({ path, title, caseName = "" }) => `${path} › ${title} › ${caseName}`))
      .map((citation) => `entry ${number} cites a test twice; remove one: ${citation}`)
  );
  assertNone([
    ...repeated(numbers).map((n) =>
      `two entries have number ${n}; the next free number is ${next}`
    ),
    ...repeated(faults).map((fault) => `remove one of two entries, or say what differs: ${fault}`),
    ...cited,
  ]);
});

test("tests/faults/catalogue.md: every cited test and case exists", () => {
  const faults: string[] = [];
  for (const { number, citations } of ENTRIES) {
    for (const { path, title, caseName } of citations) {
      if (!existsSync(join(ROOT, path))) {
        faults.push(`entry ${number}: no file ${path}; cite the current file of the test`);
      } else if (!titlesIn(path).includes(title)) {
        faults.push(`entry ${number}: ${path} has no test "${title}"; cite its current title`);
      } else if (caseName !== undefined && !hasCase(withImports(path), caseName)) {
        faults.push(`entry ${number}: ${path} has no case "${caseName}"; cite its current name`);
      }
    }
  }
  assertNone(faults);
});

test("tests/faults/catalogue.md: every test in tests/faults is cited", () => {
  const cited = new Set(
    ENTRIES.flatMap((entry) => entry.citations).map(({ path, title }) => `${path} › ${title}`),
  );
  const files = readdirSync(join(ROOT, FAULT_TESTS))
    .filter((name) => name.endsWith("_test.ts") && name !== "fault_catalogue_test.ts")
    .map((name) => `${FAULT_TESTS}/${name}`);
  const uncited = files.flatMap((path) => {
    const titles = titlesIn(path);
    assert.ok(titles.length > 0, `${path} has no test with a string as its title`);
    return titles.map((title) => `${path} › ${title}`).filter((citation) => !cited.has(citation));
  });
  assertNone(uncited.map((citation) => `add an entry that cites \`${citation}\``));
});
