/** Runs the comparison with peers on a minimal load, with the peers that are installed. */
import assert from "node:assert/strict";
import { chmod, readdir } from "node:fs/promises";
import { test } from "node:test";
import { findPeer } from "../../bench/peers/peer_process.ts";
import { withFolder } from "../../tools/support/program.ts";
import { runBench } from "./support/run_bench.ts";

const ROWS = "single-1,replay-tail,key-lookup,verify";

test("bench/peers measures the service and installed peers", () =>
  withFolder(async (folder) => {
    // The user that runs PostgreSQL must be able to reach its directory.
    await chmod(folder, 0o711);
    const sizes = ["--starts", "1", "--seconds", "0.05", "--events", "2000", "--rows", ROWS];
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
      const measured = ["ours", "best peer", "same work"].map(isMeasured);
      const expected = [true, hasPeer !== null, isServed && hasPostgres !== null];
      assert.deepEqual(measured, expected, JSON.stringify(row));
    }
    assert.deepEqual(await readdir(folder), ["report.json"]);
  }));
