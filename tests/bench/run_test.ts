/** Every benchmark runs to its end, with next to nothing to do, so that none can rot unseen. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Report } from "../../bench/support/report.ts";
import { type CliExit, spawnScript, withFolder } from "../../tools/support/program.ts";
import { THIS_RUNTIME } from "../../tools/support/runtimes.ts";

function runBench(name: string, args: string[]): Promise<CliExit> {
  const script = fileURLToPath(new URL(`../../bench/${name}.ts`, import.meta.url));
  return spawnScript(script, args, { permissions: ["--allow-all"] }).exited;
}

const SEALED_ROWS = ["tail", "sealed"].flatMap((form) => [
  ...[`start-${form}`, `verify-${form}`, `verify-chain-${form}`, `replay-${form}`],
  ...[`key-${form}-cold`, `key-${form}-warm`, `duplicate-${form}-cold`, `duplicate-${form}-warm`],
]).toSpliced(8, 0, "seal");

const RUNS: [string, string[], string[]][] = [
  ["ingest", ["--events", "20"], ["single-16", "batch-4"]],
  [
    "floor",
    ["--events", "20", "--seconds", "0.2"],
    [
      "answer:single-1",
      "store:batch-100-16",
      "node-http-store:single-16",
      "forward:deliver",
      "page:replay",
    ],
  ],
  ["hash_floor", ["--events", "2000"], ["verify", "seal"]],
  ["latency", ["--seconds", "0.2"], ["single-half", "single-beside", "replay-beside"]],
  ["sealing", ["--events", "20"], ["single-16", "batch-4"]],
  ["replay", ["--events", "2500", "--seconds", "0.1"], ["all-4", "page-last"]],
  ["restart", ["--events", "1500", "--starts", "1"], ["100k-batch"]],
  ["follow", ["--seconds", "0.1"], ["deliver-1", "single-stalled", "batch-reading"]],
  ["sealed", ["--events", "2500", "--starts", "1", "--seconds", "0.1"], SEALED_ROWS],
];
for (const [name, args, rows] of RUNS) {
  test(`bench/${name} measures its rows and leaves nothing behind`, async () => {
    await withFolder(async (folder) => {
      const jsonPath = join(folder, "report.json");
      const where = ["--dir", folder, "--json", jsonPath];
      const rowArgs = name === "sealed" ? [] : ["--rows", rows.join(",")];
      const run = await runBench(name, [...args, ...rowArgs, ...where]);
      assert.equal(run.code, 0, run.stderr);
      const report: Report = JSON.parse(await readFile(jsonPath, "utf8"));
      assert.equal(report.server, THIS_RUNTIME);
      assert.deepEqual(report.rows.map(({ row }) => row), rows);
      for (const row of rows) assert(run.stdout.includes(`\n${row}`), run.stdout);
      for (const row of report.rows) {
        const events = row["events/s"] ?? row["start ms"] ?? row["ms"] ?? row["p50 ms"];
        // On a busy machine a window this short may see no answer.
        assert(typeof events === "number" && events >= 0, JSON.stringify(row));
      }
      assert.deepEqual(await readdir(folder), ["report.json"]);
    });
  });
}

test("bench/ingest says what is wrong and exits 1", async () => {
  const run = await runBench("ingest", ["--rows", "none"]);
  assert.deepEqual([run.code, run.stdout], [1, ""]);
  assert.match(run.stderr, /no row none; there are single-1, /);
});
