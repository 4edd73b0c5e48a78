/** Runs every benchmark on a minimal load, so that none breaks unnoticed. */
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { test } from "node:test";
import { withFolder } from "../../tools/support/program.ts";
import { THIS_RUNTIME } from "../../tools/support/runtimes.ts";
import { runBench, startBench } from "./support/run_bench.ts";

const RUNS: [name: string, args: string[], rows: string[]][] = [
  ["shapes", ["--seconds", "0.5"], ["conditional-64", "beside-conditional-16"]],
  ["backlog", ["--events", "20000"], ["full-speed"]],
  [
    "memory",
    ["--events", "300", "--shape", "single", "--seconds", "0.3"],
    ["keys", "all"],
  ],
  [
    "hostile",
    ["--events", "20000", "--seconds", "0.2"],
    ["alone", "abandoned-400", "pipeline-16", "unread-streams-1500"],
  ],
];

for (const [name, args, rows] of RUNS) {
  test(`bench/${name} measures its rows and leaves nothing behind`, () =>
    withFolder(async (folder) => {
      const { report } = await runBench(name, folder, [...args, "--rows", rows.join(",")]);
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

test("bench/compare measures one checkout alone", async () => {
  const small = ["--rounds", "1", "--seconds", "0.1", "--events", "1000"];
  const run = await startBench("compare", [...small, "--rows", "1 client,lookup,start"]);
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stdout, /^compare: server on .*\n\nrow .*ours .*\n.*1 client .*\n/);
  assert.match(run.stdout, /\nkey lookup p50 ms .*\nstart with the log in the tail ms /);
});

for (const shape of ["single", "fabricated"]) {
  test(`bench/scale reports all figures of a ${shape} log`, () =>
    withFolder(async (folder) => {
      const small = ["--tail-mb", "0.1", "--rounds", "1", "--seconds", "0.1"];
      const args = [...small, "--events", "300", "--shape", shape];
      const { report } = await runBench("scale", folder, args);
      for (const row of report.rows) {
        const [name, figure] = [`${row["row"]}`, row["300 events"]];
        // Memory is reported only where /proc exists.
        assert.ok(/ MB$/.test(name) || typeof figure === "number", `${name}: ${figure}`);
      }
    }));
}
