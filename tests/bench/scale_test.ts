/** The scale benchmark with next to nothing to do, and what it asks of a log. */
import assert from "node:assert/strict";
import type { Buffer } from "node:buffer";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { sideBySide } from "../../bench/scale/figures.ts";
import { BulkBatches, oldBatch, oldStreamName, singleBatch } from "../../bench/scale/history.ts";
import { parseScaleOptions } from "../../bench/scale/options.ts";
import type { Report } from "../../bench/support/report.ts";
import { checkBatch } from "../../src/event/batch.ts";
import { spawnScript, withFolder } from "../../tools/support/program.ts";
import { THIS_RUNTIME } from "../../tools/support/runtimes.ts";

const SCRIPT = fileURLToPath(new URL("../../bench/scale.ts", import.meta.url));
const SMALL = ["--tail-mb", "0.1", "--starts", "1", "--seconds", "0.1"];

async function runScale(folder: string, args: string[]): Promise<Report> {
  const jsonPath = join(folder, "report.json");
  const all = [...SMALL, ...args, "--dir", folder, "--json", jsonPath];
  const exit = await spawnScript(SCRIPT, all, { permissions: ["--allow-all"] }).exited;
  assert.equal(exit.code, 0, exit.stderr);
  return JSON.parse(await readFile(jsonPath, "utf8"));
}

test("bench/scale tells all figures and leaves nothing behind", () =>
  withFolder(async (folder) => {
    const report = await runScale(folder, ["--events", "1500"]);
    assert.equal(report.server, THIS_RUNTIME);
    const figures = new Map(report.rows.map((row) => [row["row"], row["1,500 events"]]));
    // The old ones, and 1,000 of each batch; several clients may append more than asked for.
    assert.ok(Number(figures.get("streams")) >= 150 + 2000);
    for (const [name, figure] of figures) {
      // Memory is told where /proc is.
      assert.ok(/ MB$/.test(`${name}`) || typeof figure === "number", `${name}: ${figure}`);
    }
    assert.deepEqual(await readdir(folder), ["report.json"]);
  }));

test("bench/scale --keep builds a log once and asks it again, --shape single too", () =>
  withFolder(async (folder) => {
    const args = ["--events", "300", "--shape", "single", "--keep", join(folder, "kept")];
    const reports = [await runScale(folder, args), await runScale(folder, args)];
    const [built, askedAgain] = reports.map(({ rows }) =>
      new Map(rows.map((row) => [row["row"], row["300 events"]]))
    );
    for (const row of ["events sealed", "segments", "append while building p99 ms"]) {
      assert.equal(typeof built!.get(row), "number");
      assert.equal(built!.get(row), askedAgain!.get(row));
    }
    assert.ok(existsSync(join(folder, "kept", "single-300", "data", "log", "manifest.json")));
  }));

function bodyOf(request: Buffer): Buffer {
  return request.subarray(request.indexOf("\r\n\r\n") + 4);
}

for (const [batchEvents, batches] of [[1000, 3], [1, 250]] as const) {
  test(`BulkBatches of ${batchEvents} differ in id and keys, and spread over all streams`, () => {
    const requests = new BulkBatches(batchEvents);
    const ids = new Set<string>();
    const keys = new Set<string>();
    const streams = new Set<string>();
    for (let number = 0; number < batches; number++) {
      const { batchId, source, events } = checkBatch(bodyOf(requests.request(number)));
      ids.add(batchId);
      for (const { recordKey, stream } of events) {
        keys.add(recordKey);
        streams.add(`${source} ${stream}`);
      }
    }
    const events = batches * batchEvents;
    assert.deepEqual([ids.size, keys.size, streams.size], [batches, events, events]);
  });
}

test("BulkBatches makes the same batch for the same number", () => {
  const batches = new BulkBatches(1);
  const seventh = batches.request(7).toString();
  batches.request(1_234_567);
  assert.equal(new BulkBatches(1).request(7).toString(), seventh);
  assert.equal(batches.request(7).toString(), seventh);
});

test("singleBatch() asks for a frontier when told, and oldBatch() has a stream of its own", () => {
  const named = { batchId: "a", source: "s", stream: "t" };
  const first = checkBatch(bodyOf(singleBatch({ ...named, expectedFrontier: null })));
  assert.deepEqual(first.precondition, { stream: "t", expectedFrontier: null });
  const { precondition, events } = checkBatch(bodyOf(oldBatch(3)));
  assert.equal(precondition, undefined);
  assert.deepEqual(events.map(({ stream }) => stream), [oldStreamName(3)]);
});

test("sideBySide() puts the last to the first, and nothing to nothing", () => {
  const columns = [{ name: "small", figures: { "start ms": 200, "lost MB": null, none: 0 } }, {
    name: "large",
    figures: { "start ms": 300, "lost MB": 4, none: 1 },
  }];
  assert.deepEqual(sideBySide(columns), [
    { row: "start ms", small: 200, large: 300, "last/first": 1.5, "at most": "1,000" },
    { row: "lost MB", small: null, large: 4, "last/first": null, "at most": null },
    { row: "none", small: 0, large: 1, "last/first": null, "at most": null },
  ]);
});

test("parseScaleOptions() refuses what makes no sense", () => {
  assert.deepEqual(parseScaleOptions(["--events", "1e5,20"]).sizes, [100_000, 20]);
  assert.deepEqual(parseScaleOptions(["--parts", "chain,starts"]).parts, ["starts", "chain"]);
  const wrong = [["--events", "1,x"], ["--shape", "round"], ["--tail-mb", "0"], ["--parts", "x"], [
    "--rows",
    "a",
  ]];
  for (const args of wrong) assert.throws(() => parseScaleOptions(args), Error, args.join(" "));
});
