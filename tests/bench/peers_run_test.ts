/** Runs the comparison with peers on a minimal load, with the peers that are installed. */
import assert from "node:assert/strict";
import { chmod, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { findPeer } from "../../bench/peers/peer_process.ts";
import { withFolder } from "../../tools/support/program.ts";
import { runBench, startBench } from "./support/run_bench.ts";

const ROWS = "single-1,replay-tail,key-lookup,verify";

test("bench/peers measures the service, its floor and installed peers, and draws the result", () =>
  withFolder(async (folder) => {
    // The user that runs PostgreSQL must be able to reach its directory.
    await chmod(folder, 0o711);
    const sizes = ["--rounds", "1", "--seconds", "0.05", "--events", "2000", "--rows", ROWS];
    const { report, stderr } = await runBench("peers/main", folder, sizes);
    const labels = ["single-1", "replay-tail", "key-lookup p50", "verify"];
    assert.deepEqual(report.rows.map(({ row }) => row), labels);
    const [hasRedis, hasPostgres] = [findPeer("redis-server"), findPeer("postgres")];
    assert.equal(stderr.includes("apt-get install redis-server"), hasRedis === null);
    assert.equal(stderr.includes("apt-get install postgresql"), hasPostgres === null);
    for (const row of report.rows) {
      const isServed = labels.indexOf(`${row["row"]}`) < labels.indexOf("key-lookup p50");
      const isMeasured = (column: string) => typeof row[column] === "number";
      const hasPeer = isServed ? hasRedis ?? hasPostgres : row["unit"] === "ms" ? hasPostgres : "";
      const measured = ["ours", "best peer", "same work", "floor"].map(isMeasured);
      const expected = [true, hasPeer !== null, isServed && hasPostgres !== null, isServed];
      assert.deepEqual(measured, expected, JSON.stringify(row));
    }
    const drawn = await startBench("peers/draw", [
      join(folder, "chart.svg"),
      join(folder, "report.json"),
    ]);
    assert.deepEqual([drawn.code, drawn.stderr], [0, ""]);
    const chart = await readFile(join(folder, "chart.svg"), "utf8");
    assert.match(chart, /^<svg .*Batches of 1, 1 client<.*Replay of the tail.*<\/svg>\n$/s);
    assert.equal(chart.includes(">Redis<"), hasRedis !== null);
    assert.deepEqual((await readdir(folder)).toSorted(), ["chart.svg", "report.json"]);
  }));
