/** Runs the comparison with peers on a minimal load, with and without the peers installed. */
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { findPeer } from "../../bench/peers/peer_process.ts";
import { skipLoudly } from "../faults/support/skip.ts";
import { withFolder } from "../../tools/support/program.ts";
import { runBench, startBench } from "./support/run_bench.ts";

const SIZES = ["--starts", "1", "--seconds", "0.05", "--events", "2000", "--rows"];

test("bench/peers measures the service and its floor, and says how to install missing peers", () =>
  withFolder(async (folder) => {
    const empty = join(folder, "empty");
    await mkdir(empty);
    const args = [...SIZES, "single-1,replay-tail,deliver,seal"];
    const wrapper = ["env", `PEERS_PATH=${empty}`];
    const { report, stderr } = await runBench("peers/main", folder, args, { wrapper });
    assert.match(stderr, /no redis-server.*: apt-get install redis-server/);
    assert.match(stderr, /no PostgreSQL.*: apt-get install postgresql/);
    const labels = ["single-1", "replay-tail", "deliver p50", "deliver p99", "seal"];
    assert.deepEqual(report.rows.map(({ row }) => row), labels);
    const peers = [...Array(4).fill(null), "DuckDB COPY TO parquet"];
    assert.deepEqual(report.rows.map(({ by }) => by), peers);
    for (const { row, floor } of report.rows) assert.equal(floor === null, row === "seal");
    // A single client waits for each commit, so every fsync covers one event.
    assert.equal(report.rows[0]!["events/fsync"], 1);
    const chart = join(folder, "chart.svg");
    const drawn = await startBench("peers/draw", [chart, join(folder, "report.json")]);
    assert.deepEqual([drawn.code, drawn.stderr], [0, ""]);
    assert.match(await readFile(chart, "utf8"), /^<svg .*Replay of the tail.*<\/svg>\n$/s);
    assert.deepEqual((await readdir(folder)).toSorted(), ["chart.svg", "empty", "report.json"]);
  }));

test("bench/peers drives Redis and PostgreSQL and leaves nothing behind", async (context) => {
  const missing = ["redis-server", "redis-benchmark", "postgres", "initdb", "pgbench"]
    .filter((program) => findPeer(program) === null);
  if (missing.length > 0) return skipLoudly(context, `not installed: ${missing.join(", ")}`);
  await withFolder(async (folder) => {
    // The user that runs PostgreSQL must be able to reach its directory.
    await chmod(folder, 0o711);
    const rows = "single-1,batch-100-16,replay-tail,deliver,key-lookup";
    const { report } = await runBench("peers/main", folder, [...SIZES, rows]);
    const labels = ["single-1", "batch-100-16", "replay-tail"];
    labels.push("deliver p50", "deliver p99", "key-lookup p50");
    assert.deepEqual(report.rows.map(({ row }) => row), labels);
    for (const row of report.rows) {
      assert(typeof row["best peer"] === "number", JSON.stringify(row));
      for (const column of ["same work", "floor"]) {
        const isMeasured = typeof row[column] === "number";
        assert.equal(isMeasured, row["row"] !== "key-lookup p50", JSON.stringify(row));
      }
    }
    assert.deepEqual(await readdir(folder), ["report.json"]);
  });
});
