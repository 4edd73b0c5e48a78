/** The chart drawn from the results of the comparison with peers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawChart, type PeersResult } from "../../bench/peers/chart.ts";
import type { Row } from "../../bench/support/report.ts";

function result(server: string, rows: Row[], details: Row[] = []): PeersResult {
  const conditions = { client: "node", processors: 2, diskP50Ms: 0.1, diskP99Ms: 0.2 };
  return { benchmark: "peers", server, ...conditions, rows, details };
}

interface DrawnGroup {
  title: string;
  /** Name, label and width of each bar. */
  bars: [name: string, label: string, width: number][];
}

/** Reads back the groups in a chart. */
function groupsOf(chart: string): DrawnGroup[] {
  return [...chart.matchAll(/<g .*?<\/g>/gs)].map(([group]) => {
    const title = /<text [^>]*>(.*?)<\/text>/.exec(group)![1]!.replaceAll(/<.*?>/g, "");
    const bars = group.matchAll(
      />([^<]+)<\/text><rect [^>]*width="([\d.]+)"[^>]*\/><text[^>]*>(.*?)</g,
    );
    return {
      title,
      bars: [...bars].map(([, name, width, label]) => [name!, label!, Number(width)]),
    };
  });
}

const REDIS = { row: "single-16", who: "Redis", how: "XADD", "events/s": 30_000 };

test("drawChart() draws both runtimes and the better figure of each peer, to scale", () => {
  const [group, ...others] = groupsOf(drawChart([
    result("node", [{ row: "single-16", ours: 12_000, "same work": 20_000 }], [
      REDIS,
      { ...REDIS, how: "XADD by redis-benchmark", "events/s": 40_000 },
      { ...REDIS, who: "PostgreSQL", "events/s": 90_000 },
    ]),
    result("deno", [{ row: "single-16", ours: 10_000, "same work": 24_000 }], [REDIS]),
  ]));
  assert.deepEqual(others, []);
  assert.equal(group!.title, "Batches of 1, 16 clients events/s");
  const labels = group!.bars.map(([name, label]) => [name, label]);
  assert.deepEqual(labels, [
    ["ours, Node", "12,000"],
    ["ours, Deno", "10,000"],
    ["PostgreSQL", "24,000"],
    ["Redis", "40,000"],
  ]);
  const widthMax = Math.max(...group!.bars.map(([, , width]) => width));
  const shares = group!.bars.map(([, , width]) => (width / widthMax).toFixed(2));
  assert.deepEqual(shares, ["0.30", "0.25", "0.60", "1.00"]);
});

test("drawChart() draws delivery times, where less is better, and omits missing peers", () => {
  const rows = (p50: number, p99: number) => [
    { row: "deliver p50", ours: p50, "same work": p50 / 2 },
    { row: "deliver p99", ours: p99, "same work": null },
    { row: "seal", ours: 100_000, "same work": null },
  ];
  const chart = drawChart([result("deno", rows(1, 3)), result("node", rows(2, 6))]);
  const groups = groupsOf(chart).map(({ title, bars }) => [title, bars.map(([, label]) => label)]);
  assert.deepEqual(groups, [
    ["Delivery, p50 ms, less is better", ["1", "2", "0.5"]],
    ["Delivery, p99 ms, less is better", ["3", "6"]],
  ]);
});

test("drawChart() has a title and colors for both color schemes", () => {
  const chart = drawChart([result("node", [{ row: "replay-tail", ours: 500_000 }])]);
  assert.match(
    chart,
    /^<svg [^>]*role="img"[^>]*aria-labelledby="title"[^>]*>\n<title id="title">/,
  );
  const [light, dark] = chart.split("@media (prefers-color-scheme: dark)");
  for (const name of ["page", "first", "second", "same", "other"]) {
    for (const scheme of [light!, dark!]) assert.match(scheme, new RegExp(`\\.${name} { fill: #`));
  }
});

test("drawChart() rejects results of other benchmarks, and results without a drawn row", () => {
  const other = { ...result("node", []), benchmark: "floor" };
  assert.throws(() => drawChart([other]), /not a result of bench\/peers: floor$/);
  assert.throws(() => drawChart([result("node", [{ row: "seal", ours: 1 }])]), /no ingest, replay/);
});
