/** Checks `docs/http-api.md` against the service and `docs/openapi.yaml`. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ERROR_STATUS } from "../../src/event/api_error.ts";
import { type Node, OpenApiDocument } from "./support/openapi.ts";

const TEXT = readFileSync(new URL("../../docs/http-api.md", import.meta.url), "utf8");
const DOCUMENT = new OpenApiDocument();

/** The section from a heading to the next heading of the same level. */
function sectionOf(heading: string): string {
  const start = TEXT.indexOf(`\n## ${heading}\n`);
  assert.ok(start >= 0, `the section ${heading} exists`);
  const end = TEXT.indexOf("\n## ", start + 1);
  return TEXT.slice(start, end < 0 ? undefined : end);
}

/** The first cells of all table rows, without backticks. */
function firstCells(text: string): string[] {
  return [...text.matchAll(/^\| `([^`]+)` +\|/gm)].map((match) => match[1]!);
}

/** A JSON value and every value nested in it. */
function* valuesIn(value: unknown): Generator<unknown> {
  yield value;
  if (typeof value !== "object" || value === null) return;
  for (const child of Object.values(value)) yield* valuesIn(child);
}

test("docs/http-api.md: the error table lists exactly the error codes, with their statuses", () => {
  const rows = [...sectionOf("Errors").matchAll(/^\| `(\w+)` +\| +(\d{3}) \|/gm)];
  const documented = rows.map(([, code, status]) => [code, Number(status)]);
  assert.deepEqual(documented, Object.entries(ERROR_STATUS));
});

test("docs/http-api.md: the context members of each error match its schema", () => {
  const schemas: Record<string, Node> = DOCUMENT.root.components!.schemas!;
  for (const row of sectionOf("Errors").matchAll(/^\| `(\w+)` .*\|([^|]*)\|$/gm)) {
    const named = [...row[2]!.matchAll(/`(\w+)`/g)].map((match) => match[1]!);
    const schema = Object.values(schemas).find((schema) =>
      String(schema.properties?.error?.const) === row[1]
    );
    const further = Object.keys(schema!.properties!).slice(2);
    assert.deepEqual(named, further, row[1]);
  }
});

for (
  const [heading, path] of [["Replay", "/v1/events"], ["List streams", "/v1/streams"]] as const
) {
  test(`docs/http-api.md: the section on ${path} lists all its parameters`, () => {
    const parameters = Object.values(DOCUMENT.root.paths![path]!.get!.parameters!);
    const cells = firstCells(sectionOf(heading));
    for (const node of parameters) {
      const name = String(DOCUMENT.resolve(node).name);
      assert.ok(cells.includes(name), name);
    }
  });
}

test("docs/http-api.md: the follow section lists all reasons and record types", () => {
  const { EndRecord } = DOCUMENT.root.components!.schemas!;
  const reasons = Object.values(EndRecord!.properties!.reason!.enum!).map(String);
  const cells = firstCells(sectionOf("Follow"));
  assert.deepEqual(cells, ["events", "caught_up", "end", ...reasons]);
});

test("docs/http-api.md: the JSON examples are real responses", () => {
  const answers = JSON.stringify([...valuesIn(DOCUMENT.root.components!.examples)]);
  const blocks = [...TEXT.matchAll(/^```json\n(.*?)^```$/gms)];
  assert.ok(blocks.length > 0);
  for (const [, block] of blocks) {
    assert.ok(answers.includes(JSON.stringify(JSON.parse(block!))), block);
  }
});
