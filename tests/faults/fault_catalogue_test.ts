/**
 * docs/fault_catalogue.md against the tests: numbers have no gap, no fault is there twice, every
 * test and case that is cited exists, and every test in this folder is cited.
 *
 * A citation is `file › title` or `file › title › case`. What a test fills into its title stands as
 * `…`, without the seed that the title may end with. A case stands in the test file, or in one of
 * the tests' files that it imports, as a string or as the name of a member.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CATALOGUE = "docs/fault_catalogue.md";
const FAULT_TESTS = "tests/faults";

interface Citation {
  path: string;
  title: string;
  caseName: string | undefined;
}

interface Row {
  number: string;
  fault: string;
  where: string;
  citations: Citation[];
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

/** @throws {AssertionError} a row that has not the five cells, or cites no test. */
function parseRow(line: string): Row {
  const cells = line.split("|").map((cell) => cell.trim());
  const [before, number, fault, where, holds, tests, after] = cells;
  assert.ok(
    cells.length === 7 && before === "" && after === "" && fault && where && holds,
    `a row needs number | fault | where it strikes | what must hold | test: ${line}`,
  );
  const citations = [...tests!.matchAll(/`([^`]+)`/g)].map((match) => parseCitation(match[1]!));
  assert.ok(citations.length > 0, `row ${number} must cite a test as \`file › title\``);
  return { number: number!, fault, where, citations };
}

function parseCitation(text: string): Citation {
  const [path, title, ...rest] = text.split(" › ");
  assert.ok(path && title, `a citation needs \`file › title\`, or with › case: ${text}`);
  return { path, title, caseName: rest.length === 0 ? undefined : rest.join(" › ") };
}

const ROWS: Row[] = read(CATALOGUE).split("\n")
  .filter((line) => line.startsWith("|") && !/^\| *(number|-+:) *\|/.test(line))
  .map(parseRow);

const STRING = /"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/.source;
const TEST_CALL = new RegExp(`(?<![.\\w])test\\w*\\(\\s*(?:(${STRING})|(\\w+)\\s*,)`, "g");

/** Titles of the tests in a file, as the catalogue cites them. */
function titlesIn(path: string): string[] {
  const source = read(path);
  return [...source.matchAll(TEST_CALL)].flatMap(([, literal, name]) => {
    if (literal !== undefined) return titleOf(literal);
    const constant = new RegExp(`const ${name} =\\s*(${STRING});`).exec(source)?.[1];
    if (constant !== undefined) return titleOf(constant);
    // A function of the file's own that is called with titles.
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

/** A test file and all that it imports of the tests, as one text. */
function withImports(path: string, seen: Set<string> = new Set()): string {
  if (seen.has(path) || !existsSync(join(ROOT, path))) return "";
  seen.add(path);
  const source = read(path);
  const imported = [...source.matchAll(/(?:from|import) "(\.[^"]+)"/g)]
    .map((match) => join(path, "..", match[1]!))
    .filter((target) => target.startsWith("tests/"));
  return [source, ...imported.map((target) => withImports(target, seen))].join("\n");
}

function hasCase(source: string, caseName: string): boolean {
  const spellings = [`"${caseName}"`, `'${caseName}'`, "`" + caseName + "`", `  ${caseName}: `];
  return spellings.some((spelling) => source.includes(spelling));
}

/** Each text that stood there before. */
function repeated(texts: readonly string[]): string[] {
  return texts.filter((text, place) => texts.indexOf(text) < place);
}

/** Fails with a line for each fault: what is wrong, and what to do. */
function assertNone(faults: readonly string[]): void {
  assert.ok(faults.length === 0, `${CATALOGUE}:\n${faults.join("\n")}`);
}

test("docs/fault_catalogue.md: every row has a number of its own, without a gap", () => {
  const numbers = ROWS.map((row) => row.number);
  const missing = ROWS.map((_, place) => `${place + 1}`).filter((n) => !numbers.includes(n));
  const wrong = numbers.filter((number, place) =>
    numbers.indexOf(number) < place || !/^[1-9]\d*$/.test(number) || Number(number) > ROWS.length
  );
  assertNone(
    wrong.map((number, place) => `give one row that has number ${number} number ${missing[place]}`),
  );
});

test("docs/fault_catalogue.md: no fault is there twice", () => {
  const faults = ROWS.map(({ fault, where }) => `${fault} | ${where}`.toLowerCase());
  const cited = ROWS.flatMap(({ number, citations }) =>
    repeated(citations.map(({ path, title, caseName = "" }) => `${path} › ${title} › ${caseName}`))
      .map((citation) => `row ${number} cites a test twice; take one out: ${citation}`)
  );
  assertNone([
    ...repeated(faults).map((fault) => `take one of two rows out, or say what differs: ${fault}`),
    ...cited,
  ]);
});

test("docs/fault_catalogue.md: every cited test and case exists", () => {
  const faults: string[] = [];
  for (const { number, citations } of ROWS) {
    for (const { path, title, caseName } of citations) {
      if (!existsSync(join(ROOT, path))) {
        faults.push(`row ${number}: there is no ${path}; cite the file that has the test now`);
      } else if (!titlesIn(path).includes(title)) {
        faults.push(`row ${number}: ${path} has no test "${title}"; cite the title it has now`);
      } else if (caseName !== undefined && !hasCase(withImports(path), caseName)) {
        faults.push(`row ${number}: ${path} has no case "${caseName}"; cite the one it has now`);
      }
    }
  }
  assertNone(faults);
});

test("docs/fault_catalogue.md: every test in tests/faults is cited", () => {
  const cited = new Set(
    ROWS.flatMap((row) => row.citations).map(({ path, title }) => `${path} › ${title}`),
  );
  const own = "fault_catalogue_test.ts";
  const uncited = readdirSync(join(ROOT, FAULT_TESTS))
    .filter((name) => name.endsWith("_test.ts") && name !== own)
    .map((name) => `${FAULT_TESTS}/${name}`)
    .flatMap((path) => {
      const titles = titlesIn(path);
      assert.ok(titles.length > 0, `${path} has no test, or none whose title is a string`);
      return titles.map((title) => `${path} › ${title}`);
    })
    .filter((citation) => !cited.has(citation));
  assertNone(
    uncited.map((citation, place) => {
      return `add a row, with the number ${ROWS.length + 1 + place}, that cites \`${citation}\``;
    }),
  );
});
