/** The queries in `docs/format.md`, run by DuckDB over the sealed log of a deployment. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { DuckDBInstance } from "@duckdb/node-api";
import { EventLogClient } from "../../mod.ts";
import { type Deployment, withServing } from "../support/deployment.ts";
import { fencesOf } from "./support/fences.ts";

type Row = Record<string, unknown>;

const DOCUMENT = readFileSync(new URL("../../docs/format.md", import.meta.url), "utf8");
const QUERIES = fencesOf(DOCUMENT)
  .filter(({ language }) => language === "sql")
  .flatMap(({ text }) => text.split(";\n"))
  .map((query) => query.trim().replace(/;$/, ""))
  .filter((query) => query !== "");

/** Makes a log with three events of which one record is deleted, all of it sealed. */
async function makeSealed(deployment: Deployment): Promise<void> {
  const event = {
    stream: "orders",
    record_key: "1001",
    kind: "upserted",
    payload: { total: 42.5 },
  };
  const second = { ...event, record_key: "1002" };
  const events = [event, second, { ...second, kind: "deleted" }];
  await new EventLogClient(deployment.serving.fetch).append({
    source: "shop",
    batchId: "1",
    events,
  });
  await deployment.stop();
  const { code, stderr } = await deployment.run(["seal"]);
  assert.equal(code, 0, stderr);
}

/** Rows of each query, in the order of the document. */
async function answersIn(dir: string): Promise<Row[][]> {
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  try {
    const answers: Row[][] = [];
    for (const query of QUERIES) {
      const placed = query.replaceAll("'data/log", `'${join(dir, "data", "log")}`);
      answers.push((await connection.runAndReadAll(placed)).getRowObjectsJson() as Row[]);
    }
    return answers;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

test("the queries of docs/format.md give what their comments say", () =>
  withServing(async (deployment) => {
    await makeSealed(deployment);
    const [streams, records, payloads, facts, paths] = await answersIn(deployment.dir);
    assert.deepEqual(
      streams!.map(({ frontier: _, ...row }) => row),
      [{ source: "shop", stream: "orders", events: "3" }],
    );
    assert.deepEqual(records, [{ record_key: "1001", payload: '{"total":42.5}' }]);
    assert.equal(payloads!.length, 1);
    assert.equal(payloads![0]!.total, "42.5");
    assert.match(String(payloads![0]!.event_hash), /^[0-9a-f]{64}$/);
    assert.equal(JSON.parse(String(facts![0]!.facts)).events, 3);
    assert.match(String(paths![0]!.path), /^segments\/.*\.parquet$/);
    assert.equal(QUERIES.length, 5);
  }));
