/** The steady run with next to nothing to do, and how it counts deliveries. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Deliveries } from "../../bench/steady/deliveries.ts";
import { parseSteadyOptions } from "../../bench/steady/options.ts";
import { compareThirds } from "../../bench/steady/thirds.ts";
import type { Report } from "../../bench/support/report.ts";
import { spawnScript, withFolder } from "../../tools/support/program.ts";

const SCRIPT = fileURLToPath(new URL("../../bench/steady.ts", import.meta.url));

test("bench/steady tells of each interval, verifies the log and leaves nothing behind", () =>
  withFolder(async (folder) => {
    const jsonPath = join(folder, "report.json");
    const args = ["--minutes", "0.02", "--interval", "0.4", "--rate", "2000", "--followers", "2"];
    const where = ["--dir", folder, "--json", jsonPath];
    const permissions = ["--allow-all"];
    const exit = await spawnScript(SCRIPT, [...args, ...where], { permissions }).exited;
    assert.equal(exit.code, 0, exit.stderr);
    const { rows }: Report = JSON.parse(await readFile(jsonPath, "utf8"));
    assert.deepEqual(rows.map(({ row }) => row), ["1", "2", "3"]);
    assert.ok(rows.some((row) => Number(row["events/s"]) > 0), JSON.stringify(rows));
    assert.match(exit.stdout, /^delivery p99: first third [\d.]+ ms, last third [\d.]+ ms: /m);
    assert.match(exit.stdout, /^verify --chain passed in /m);
    assert.deepEqual(await readdir(folder), ["report.json"]);
  }));

/** The end of a follow record that goes up to an event. */
function recordThrough(id: string): Buffer {
  return Buffer.from(`],"next_after":"${id}","snapshot_through_event_id":"ff"}\n\r\n`);
}

test("Deliveries counts each batch once at each follower, before or after its receipt", () => {
  const deliveries = new Deliveries();
  const [fast, slow] = [deliveries.receiver(), deliveries.receiver()];
  const sentMs = performance.now() - 1000;
  fast(3, recordThrough("03"));
  deliveries.committed({ lastEventId: "03", sentMs });
  deliveries.committed({ lastEventId: "02", sentMs });
  deliveries.committed({ lastEventId: "05", sentMs });
  assert.equal(deliveries.missing, 1 + 3);
  slow(2, recordThrough("02"));
  fast(2, recordThrough("05"));
  assert.equal(deliveries.missing, 2);
  slow(3, recordThrough("06"));
  assert.equal(deliveries.missing, 0);
  const latencies = deliveries.take();
  assert.equal(latencies.count, 6);
  assert.ok(latencies.quantileMs(0.01) >= 990);
  assert.equal(deliveries.take().count, 0);
});

test("Deliveries takes the first record that had the batch, not the latest", () => {
  const deliveries = new Deliveries();
  const receive = deliveries.receiver();
  receive(1, recordThrough("01"));
  const afterFirstMs = performance.now();
  while (performance.now() < afterFirstMs + 5);
  receive(1, recordThrough("02"));
  deliveries.committed({ lastEventId: "01", sentMs: afterFirstMs - 1 });
  assert.ok(deliveries.take().quantileMs(1) <= 1.02);
});

test("Deliveries reads a record whose end lies in several chunks", () => {
  const deliveries = new Deliveries();
  const receive = deliveries.receiver();
  deliveries.committed({ lastEventId: "0102", sentMs: 0 });
  const cut = recordThrough("0102").toString().replace("01", "01\r\n5f\r\n")
    .replace('"}', '"\r\n2\r\n}');
  receive(1, Buffer.from(cut));
  assert.equal(deliveries.missing, 0);
});

test("Deliveries refuses what is no end of a record", () => {
  const receive = new Deliveries().receiver();
  assert.throws(() => receive(1, Buffer.from("}\n\r\n")), /no end of a follow record/);
});

test("compareThirds() tells growth from what goes up and down", () => {
  const interval = (memoryMb: number | null, p99Ms: number) => ({
    memoryMb,
    appendP99Ms: p99Ms,
    deliveryP99Ms: 2 * p99Ms,
  });
  const flat = [[100, 3], [120, 9], [90, 2], [500, 50], [400, 60], [1, 1], [90, 4], [130, 3], [
    80,
    9,
  ]].map(([memory, p99]) => interval(memory!, p99!));
  assert.deepEqual(compareThirds(flat), [
    "memory: first third 120 MB, last third 130 MB: flat",
    "append p99: first third 3 ms, last third 4 ms: flat",
    "delivery p99: first third 6 ms, last third 8 ms: flat",
  ]);
  assert.deepEqual(compareThirds([interval(100, 3), interval(1, 1), interval(121, 5)]), [
    "memory: first third 100 MB, last third 121 MB: grew by more than 1.2",
    "append p99: first third 3 ms, last third 5 ms: grew by more than 1.5",
    "delivery p99: first third 6 ms, last third 10 ms: grew by more than 1.5",
  ]);
  assert.equal(compareThirds([interval(null, 1), interval(null, 1), interval(9, 1)]).length, 2);
});

test("parseSteadyOptions() refuses what makes no sense", () => {
  assert.equal(parseSteadyOptions(["--rate", "5"]).eventsPerSecond, 5);
  assert.equal(parseSteadyOptions([]).eventsPerSecond, undefined);
  const wrong = [["--minutes", "2"], ["--rate", "0"], ["--clients", "x"], ["--events", "1"]];
  for (const args of wrong) assert.throws(() => parseSteadyOptions(args), Error, args.join(" "));
});
