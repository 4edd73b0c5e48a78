/** How measurements of ours and of the peers become a table. */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import {
  comparisonRows,
  detailRows,
  medianOf,
  segmentsGoal,
} from "../../bench/peers/comparison.ts";
import type { Series } from "../../bench/peers/comparison.ts";
import { type Measurement, NOT_MEASURED } from "../../bench/peers/measurement.ts";
import { parsePgbench, parseRedisBenchmark } from "../../bench/peers/native_tools.ts";
import { treeCpuSeconds } from "../../bench/peers/process_usage.ts";
import { cpuSeconds } from "../../bench/support/process_stats.ts";

function series(
  who: Pick<Series, "row" | "subject" | "variant"> & { isSameWork?: boolean },
  ...rounds: Partial<Measurement>[]
): Series {
  const all = rounds.map((round) => ({ ...NOT_MEASURED, ...round }));
  return { isSameWork: false, ...who, rounds: all };
}

const rates = (...values: number[]) => values.map((eventsPerSecond) => ({ eventsPerSecond }));

const INGEST: Series[] = [
  series({ row: "single-1", subject: "ours", variant: "node" }, ...rates(100, 900, 300)),
  series({ row: "single-1", subject: "Redis", variant: "slow" }, ...rates(150, 150, 150)),
  series({ row: "single-1", subject: "Redis", variant: "fast" }, ...rates(1, 600, 700)),
  series(
    { row: "single-1", subject: "PostgreSQL", variant: "INSERT", isSameWork: true },
    ...rates(200, 100, 300),
  ),
];

test("comparisonRows() compares medians with the best of the peers and with the same work", () => {
  const [row, ...others] = comparisonRows(INGEST);
  assert.deepEqual(others, []);
  const { ours, by } = row!;
  assert.deepEqual([row!["row"], row!["unit"], ours], ["single-1", "events/s", 300]);
  assert.deepEqual([row!["best peer"], by, row!["x best"]], [600, "Redis fast", 0.5]);
  assert.deepEqual(
    [row!["same work"], row!["same by"], row!["x same"]],
    [200, "PostgreSQL INSERT", 1.5],
  );
});

test("comparisonRows() takes less time for better, and p50 and p99 for lines of their own", () => {
  const rows = comparisonRows([
    series({ row: "deliver", subject: "ours", variant: "node" }, { p50Ms: 2, p99Ms: 3 }),
    series({ row: "deliver", subject: "Redis", variant: "XREAD" }, { p50Ms: 1, p99Ms: 12 }),
    series({ row: "deliver", subject: "PostgreSQL", variant: "LISTEN" }, { p50Ms: 4, p99Ms: 6 }),
  ]);
  const cells = rows.map((row) => [row["row"], row["unit"], row["by"], row["x best"]]);
  assert.deepEqual(cells, [
    ["deliver p50", "ms", "Redis XREAD", 0.5],
    ["deliver p99", "ms", "PostgreSQL LISTEN", 2],
  ]);
});

test("comparisonRows() keeps a digit of a ratio that is far from 1", () => {
  const [row] = comparisonRows([
    series({ row: "verify", subject: "ours", variant: "node" }, ...rates(10)),
    series({ row: "verify", subject: "sha256sum", variant: "files" }, ...rates(2345)),
  ]);
  assert.equal(row!["x best"], 0.004);
});

test("comparisonRows() leaves empty what no peer did", () => {
  const [row] = comparisonRows(INGEST.slice(0, 1));
  for (const column of ["best peer", "by", "x best", "same work", "same by", "x same"]) {
    assert.equal(row![column], null, column);
  }
  assert.equal(row!["ours"], 300);
});

test("comparisonRows() marks a load generator that took more than 85 % of a processor", () => {
  const shared = (clientShare: number) => ({ eventsPerSecond: 10, clientShare });
  const [row] = comparisonRows([
    series({ row: "verify", subject: "ours", variant: "node" }, shared(0.86)),
    series({ row: "verify", subject: "sha256sum", variant: "files" }, shared(0.85)),
  ]);
  assert.equal(row!["client %"], "86! / 85 / -");
});

test("comparisonRows() and detailRows() give processor time in ms for 1,000 events", () => {
  const used = { eventsPerSecond: 1, serverCpuSecondsPer1000: 0.0123, eventsPerSync: 32.04 };
  const all = [series({ row: "single-16", subject: "ours", variant: "node" }, used)];
  for (const row of [...comparisonRows(all), ...detailRows(all)]) {
    assert.deepEqual([row["CPU ms/1,000"], row["events/fsync"]], [12.3, 32]);
  }
});

test("detailRows() has a line for each variant, with the range of its rounds", () => {
  const rows = detailRows(INGEST);
  assert.deepEqual(
    rows.map((row) => [row["who"], row["how"], row["events/s"], row["least"], row["most"]]),
    [
      ["ours", "node", 300, 100, 900],
      ["Redis", "slow", 150, 150, 150],
      ["Redis", "fast", 600, 1, 700],
      ["PostgreSQL", "INSERT", 200, 100, 300],
    ],
  );
});

test("segmentsGoal() is half of what reading our tail reached, and nothing without that", () => {
  const tail = series({ row: "replay-tail", subject: "ours", variant: "node" }, ...rates(8, 2, 6));
  const sealed = series({ row: "replay-segments", subject: "ours", variant: "node" }, ...rates(6));
  const goal = segmentsGoal([tail, sealed]);
  const row = comparisonRows([sealed, ...goal])[0]!;
  assert.deepEqual([row["best peer"], row["by"], row["x best"]], [3, "goal half of the tail", 2]);
  assert.deepEqual(segmentsGoal(INGEST), []);
});

const MEDIANS: [(number | null)[], number | null][] = [
  [[], null],
  [[null, null], null],
  [[3], 3],
  [[10, null, 9, 100], 10],
  [[4, 1, 3, 100], 3.5],
];
test("medianOf() is the middle of what is known", () => {
  for (const [values, median] of MEDIANS) {
    const rounds = values.map((p50Ms) => ({ ...NOT_MEASURED, p50Ms }));
    assert.equal(medianOf(rounds, "p50Ms"), median, String(values));
  }
});

test("parseRedisBenchmark() reads the rate and latencies behind a command with quotes", () => {
  const output = '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms",' +
    '"p95_latency_ms","p99_latency_ms","max_latency_ms"\n' +
    '"XADD events * e {"a":"b","c":"1"}","4347.83","0.221","0.144","0.175","0.247","1.167","3.4"\n';
  const report = { perSecond: 4347.83, p50Ms: 0.175, p99Ms: 1.167 };
  assert.deepEqual(parseRedisBenchmark(output), report);
  assert.throws(() => parseRedisBenchmark("Could not connect\n"), /printed no rate/);
});

test("parsePgbench() reads the rate", () => {
  const output = "latency average = 0.2 ms\n" +
    "tps = 4999.1 (without initial connection time)\n";
  assert.deepEqual(parsePgbench(output), { perSecond: 4999.1, p50Ms: null, p99Ms: null });
  assert.throws(() => parsePgbench("pgbench: error\n"), /printed no rate/);
});

test("treeCpuSeconds() counts a process and what it has started", () => {
  const own = cpuSeconds(process.pid);
  const tree = treeCpuSeconds(process.pid);
  if (process.platform !== "linux") return assert.equal(tree, null);
  assert(tree !== null && own !== null && tree >= own && tree < own + 3600);
  assert.equal(treeCpuSeconds(2 ** 30), null);
});
