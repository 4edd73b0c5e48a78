/** Runs the queries in `docs/format.md` with DuckDB over a sealed log. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { EventLogClient } from "../../mod.ts";
import { type Deployment, withServing } from "../support/deployment.ts";
import { type Row, rowsOf, withDuckDb } from "../support/duckdb.ts";
import { fencesOf } from "./support/fences.ts";

const DOCUMENT = readFileSync(new URL("../../docs/format.md", import.meta.url), "utf8");
const QUERIES = fencesOf(DOCUMENT)
  .filter(({ language }) => language === "sql")
  .flatMap(({ text }) => text.split(";\n"))
  .map((query) => query.trim().replace(/;$/, ""))
  .filter((query) => query !== "");

/** Creates a sealed log with three events, one of which deletes a record. */
async function makeSealed(deployment: Deployment): Promise<void> {
  const order = { stream: "orders", record_key: "1001", payload: { total: 42.5 } };
  const event = { ...order, kind: "upserted" };
  const second = { ...event, record_key: "1002" };
  const events = [event, second, { ...second, kind: "deleted" }];
  const client = new EventLogClient(deployment.serving.fetch);
  await client.append({ source: "shop", batchId: "1", events });
  await deployment.seal();
}

/** The rows from each query, in document order. */
function answersIn(dir: string): Promise<Row[][]> {
  return withDuckDb(async (connection) => {
    const answers: Row[][] = [];
    for (const query of QUERIES) {
      const placed = query.replaceAll("'data/log", `'${join(dir, "data", "log")}`);
      answers.push(await rowsOf(connection, placed));
    }
    return answers;
  });
}

test("docs/format.md: the queries return what their comments say", () =>
  withServing(async (deployment) => {
    await makeSealed(deployment);
    const [streams, records, payloads, metadata, paths] = await answersIn(deployment.dir);
    assert.deepEqual(
      streams!.map(({ frontier: _, ...row }) => row),
      [{ source: "shop", stream: "orders", events: "3" }],
    );
    assert.deepEqual(records, [{ record_key: "1001", payload: '{"total":42.5}' }]);
    assert.equal(payloads!.length, 1);
    assert.equal(payloads![0]!.total, "42.5");
    assert.match(String(payloads![0]!.event_hash), /^[0-9a-f]{64}$/);
    assert.equal(JSON.parse(String(metadata![0]!.metadata)).events, 3);
    assert.match(String(paths![0]!.path), /^segments\/.*\.parquet$/);
    assert.equal(QUERIES.length, 5);
  }));
