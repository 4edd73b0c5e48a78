/** The memory benchmark with next to nothing to do, and what its loads are made of. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { loadOf } from "../../bench/memory/loads.ts";
import { ALL, parseMemoryOptions } from "../../bench/memory/options.ts";
import type { LogFacts } from "../../bench/scale/built_log.ts";
import type { Report } from "../../bench/support/report.ts";
import { spawnScript, withFolder } from "../../tools/support/program.ts";

const SCRIPT = fileURLToPath(new URL("../../bench/memory.ts", import.meta.url));

async function runMemory(folder: string, args: string[]): Promise<Report> {
  const jsonPath = join(folder, "report.json");
  const all = ["--events", "300", "--shape", "single", "--seconds", "0.3", ...args];
  const where = ["--dir", folder, "--json", jsonPath];
  const exit = await spawnScript(SCRIPT, [...all, ...where], { permissions: ["--allow-all"] })
    .exited;
  assert.equal(exit.code, 0, exit.stderr);
  return JSON.parse(await readFile(jsonPath, "utf8"));
}

test("bench/memory tells of each row and leaves nothing behind", () =>
  withFolder(async (folder) => {
    const { rows } = await runMemory(folder, ["--rows", "keys,all"]);
    assert.deepEqual(rows.map(({ row, clients }) => [row, clients]), [["keys", 8], [ALL, 60]]);
    for (const row of rows) {
      for (const [name, figure] of Object.entries(row).slice(1)) {
        // What only /proc tells is not there elsewhere.
        assert.ok(/ MB$| CPU s$/.test(name) || typeof figure === "number", `${name}: ${figure}`);
      }
    }
    assert.deepEqual(await readdir(folder), ["report.json"]);
  }));

test("bench/memory --keep leaves the log that it has built as it is", () =>
  withFolder(async (folder) => {
    const kept = join(folder, "kept");
    const manifestPath = join(kept, "single-300", "data", "log", "manifest.json");
    await runMemory(folder, ["--keep", kept, "--rows", "singles"]);
    const manifest = await readFile(manifestPath, "utf8");
    await runMemory(folder, ["--keep", kept, "--rows", "batches"]);
    assert.equal(await readFile(manifestPath, "utf8"), manifest);
    assert.deepEqual((await readdir(folder)).sort(), ["kept", "report.json"]);
  }));

test("loadOf() makes new batches for each row and client", () => {
  const facts = { positions: ["a", "b"], bulkEvents: 10, nextBatch: 7 } as LogFacts;
  const ids = ["first", "second"].flatMap((row) =>
    loadOf(row, ["batches", "singles"], facts).workloads.map((workload) =>
      /"batch_id":"([^"]+)"/.exec(workload.next().toString())![1]
    )
  );
  assert.equal(new Set(ids).size, ids.length);
});

test("parseMemoryOptions() refuses what makes no sense", () => {
  const wrong = [["--events", "x"], ["--shape", "round"], ["--rows", "a"], ["--starts", "1"]];
  for (const args of wrong) assert.throws(() => parseMemoryOptions(args), Error, args.join(" "));
});
