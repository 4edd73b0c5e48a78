/** Runs every benchmark on a minimal load, so that none breaks unnoticed. */
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { withFolder } from "../../tools/support/program.ts";
import { THIS_RUNTIME } from "../../tools/support/runtimes.ts";
import { runBench, startBench } from "./support/run_bench.ts";

const SEALED_ROWS = ["tail", "sealed"].flatMap((form) => [
  ...[`start-${form}`, `verify-${form}`, `verify-chain-${form}`, `replay-${form}`],
  ...[`key-${form}-cold`, `key-${form}-warm`, `duplicate-${form}-cold`, `duplicate-${form}-warm`],
]).toSpliced(8, 0, "seal");
const MEMORY = ["--events", "300", "--shape", "single", "--seconds", "0.3"];
const STEADY = ["--minutes", "0.02", "--interval", "0.4", "--rate", "2000", "--followers", "2"];

const RUNS: [name: string, args: string[], rows: string[]][] = [
  ["ingest", ["--events", "20"], ["single-16", "batch-4"]],
  [
    "floor",
    ["--events", "20", "--seconds", "0.2"],
    [
      ...["answer:single-1", "store:batch-100-16", "hash-store:batch-1000-1"],
      ...["forward:deliver", "page:replay", "node-http-store:single-16"],
    ],
  ],
  ["hash_floor", ["--events", "2000"], ["verify", "seal"]],
  ["latency", ["--seconds", "0.2"], ["single-half", "single-beside", "replay-beside"]],
  ["sealing", ["--events", "20"], ["single-16", "batch-4"]],
  ["replay", ["--events", "2500", "--seconds", "0.1"], ["all-4", "page-last"]],
  ["restart", ["--events", "1500", "--starts", "1"], ["100k-batch"]],
  ["follow", ["--seconds", "0.1"], ["deliver-1", "single-stalled", "batch-reading"]],
  ["shapes", ["--seconds", "0.5"], ["conditional-64", "beside-conditional-16"]],
  ["memory", MEMORY, ["keys", "all"]],
  ["sealed", ["--events", "2500", "--starts", "1", "--seconds", "0.1"], SEALED_ROWS],
  [
    "hostile",
    ["--events", "20000", "--seconds", "0.2"],
    ["alone", "abandoned-400", "pipeline-16", "unread-streams-1500"],
  ],
  ["steady", STEADY, ["1", "2", "3"]],
];
/** Benchmarks that run without `--rows`: they have no such option, or all rows are wanted. */
const TELL_ALL = ["sealed", "steady"];

for (const [name, args, rows] of RUNS) {
  test(`bench/${name} measures its rows and leaves nothing behind`, () =>
    withFolder(async (folder) => {
      const rowArgs = TELL_ALL.includes(name) ? [] : ["--rows", rows.join(",")];
      const { report } = await runBench(name, folder, [...args, ...rowArgs]);
      assert.equal(report.server, THIS_RUNTIME);
      assert.deepEqual(report.rows.map(({ row }) => row), rows);
      for (const row of report.rows) {
        const figures = Object.entries(row).filter(([name]) => /s\/s$| ms$|^ms$/.test(name));
        // A figure may be 0. On a busy machine, a window this short may pass without a response.
        assert(figures.some(([, figure]) => Number(figure) >= 0), JSON.stringify(row));
      }
      assert.deepEqual(await readdir(folder), ["report.json"]);
    }));
}

test("bench/scale reports all figures, and --keep reuses its log", () =>
  withFolder(async (folder) => {
    const small = ["--tail-mb", "0.1", "--starts", "1", "--seconds", "0.1"];
    const args = [...small, "--events", "300", "--shape", "single", "--keep", join(folder, "kept")];
    const [built, askedAgain] = [
      await runBench("scale", folder, args),
      await runBench("scale", folder, args),
    ].map(({ report }) => new Map(report.rows.map((row) => [row["row"], row["300 events"]])));
    for (const [name, figure] of built!) {
      // Memory is reported only where /proc exists.
      assert.ok(/ MB$/.test(`${name}`) || typeof figure === "number", `${name}: ${figure}`);
    }
    for (const row of ["events sealed", "segments", "append while building p99 ms"]) {
      assert.equal(built!.get(row), askedAgain!.get(row));
    }
  }));

test("benchmarks exit 1 and name the invalid argument", async () => {
  for (const name of ["ingest", "memory", "scale"]) {
    const run = await startBench(name, ["--rows", "none"]);
    assert.deepEqual([run.code, run.stdout], [1, ""]);
    assert.match(run.stderr, /none|--rows/);
  }
});
