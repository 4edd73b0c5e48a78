/**
 * Draws the results of two runs as an SVG image: `draw.ts CHART.svg RESULT.json...`, one result per
 * runtime of the service. Each figure is a group of bars with its own scale: the service on each
 * runtime, PostgreSQL doing the same work, and Redis.
 */
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { runBench } from "../support/options.ts";
import { type Report, rounded } from "../support/report.ts";
import { INGEST_LOADS } from "../support/workloads.ts";
import { type Figure, FIGURES, SERVED_ROWS } from "./rows.ts";

/** A name, a class of the style, and a value. */
type Bar = [name: string, style: string, value: number];

const [COLUMNS, GROUP_WIDTH, MARGIN, HEAD_HEIGHT] = [3, 276, 16, 62];
const [GROUP_HEAD_HEIGHT, GROUP_GAP, BAR_HEIGHT, BAR_STEP] = [26, 26, 14, 18];
/** Position of the bars in their group, to the right of their names. */
const [BAR_X, BAR_WIDTH_MAX, TEXT_GAP, BASELINE] = [76, 118, 6, 11];

const TITLE = "The service compared with PostgreSQL doing the same work, and with Redis";
const OURS: Record<string, string> = { node: "ours, Node", deno: "ours, Deno" };

/** The image has its own background, since the page around it may have another color scheme. */
const STYLE = `
  .page { fill: #ffffff } .first { fill: #0b5cad } .second { fill: #3f8fdc }
  .same { fill: #b35900 } .other { fill: #6e7781 }
  text { fill: #1f2328 } .unit, .name { fill: #59636e }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .first { fill: #58a6ff } .second { fill: #a5d0ff }
    .same { fill: #f0883e } .other { fill: #8b949e }
    text { fill: #e6edf3 } .unit, .name { fill: #9198a1 }
  }
`;

/** Returns the bars of a figure. Of a peer's figures, it has the best. */
function barsOf({ label, value }: Figure, results: Report[]): Bar[] {
  const isRate = value === "eventsPerSecond";
  const bar = (name: string, style: string, cells: unknown[]): Bar[] => {
    const values = cells.filter((cell) => typeof cell === "number");
    if (values.length === 0) return [];
    const best = isRate ? Math.max(...values) : Math.min(...values);
    return [[name, style, rounded(best, isRate ? 0 : 2)]];
  };
  const rows = results.map(({ rows }) => rows.find((each) => each["row"] === label));
  return [
    ...results.flatMap(({ server }, run) =>
      bar(OURS[server]!, run === 0 ? "first" : "second", [rows[run]?.["ours"]])
    ),
    ...bar("PostgreSQL", "same", rows.map((row) => row?.["same work"])),
    ...bar("Redis", "other", rows.map((row) => row?.["Redis"])),
  ];
}

function titleOf({ row, value }: Figure): string {
  const unit = value === "eventsPerSecond" ? "events/s" : "ms, less is better";
  const other = row === "deliver" ? `delivery, ${value.slice(0, 3)}` : "replay of the tail";
  const label = INGEST_LOADS[row]?.label ?? other;
  const title = `${label[0]!.toUpperCase()}${label.slice(1)}`;
  return `${title}<tspan class="unit" font-weight="400"> ${unit}</tspan>`;
}

function drawGroup(title: string, bars: Bar[], x: number, y: number): string {
  const valueMax = Math.max(...bars.map(([, , value]) => value));
  const lines = bars.map(([name, style, value], index) => {
    const top = GROUP_HEAD_HEIGHT + index * BAR_STEP;
    const width = rounded(value / valueMax * BAR_WIDTH_MAX, 1);
    const label = `x="${rounded(BAR_X + width + TEXT_GAP, 1)}" y="${top + BASELINE}"`;
    return `  <text class="name" x="${BAR_X - TEXT_GAP}" y="${top + BASELINE}" text-anchor="end">` +
      `${name}</text>` +
      `<rect class="${style}" x="${BAR_X}" y="${top}" width="${width}" height="${BAR_HEIGHT}"/>` +
      `<text ${label}>${value.toLocaleString("en")}</text>`;
  });
  const head = `  <text y="${BASELINE}" font-weight="600">${title}</text>`;
  return [`<g transform="translate(${x} ${y})">`, head, ...lines, "</g>"].join("\n");
}

function drawChart(results: Report[]): string {
  const groups = FIGURES.filter(({ row }) => SERVED_ROWS.includes(row))
    .map((figure) => ({ title: titleOf(figure), bars: barsOf(figure, results) }))
    .filter(({ bars }) => bars.length > 0);
  if (groups.length === 0) throw new Error("the results have no ingest, replay or delivery row");
  const barsMax = Math.max(...groups.map(({ bars }) => bars.length));
  const groupHeight = GROUP_HEAD_HEIGHT + barsMax * BAR_STEP + GROUP_GAP;
  const width = COLUMNS * GROUP_WIDTH + 2 * MARGIN;
  const height = HEAD_HEIGHT + Math.ceil(groups.length / COLUMNS) * groupHeight;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img"`,
    `  aria-labelledby="title" font-family="system-ui, sans-serif" font-size="12">`,
    `<title id="title">${TITLE}</title>`,
    `<style>${STYLE}</style>`,
    `<rect class="page" width="${width}" height="${height}"/>`,
    `<text x="${MARGIN}" y="26" font-size="16" font-weight="600">${TITLE}</text>`,
    `<text class="unit" x="${MARGIN}" y="46">${results[0]!.processors} vCPUs, Unix sockets, ` +
    "300-byte payloads, every response after its fsync. Each group has its own scale.</text>",
    ...groups.map(({ title, bars }, index) => {
      const x = MARGIN + index % COLUMNS * GROUP_WIDTH;
      const y = HEAD_HEIGHT + Math.floor(index / COLUMNS) * groupHeight;
      return drawGroup(title, bars, x, y);
    }),
    "</svg>\n",
  ].join("\n");
}

await runBench(async () => {
  const [chart, ...paths] = process.argv.slice(2);
  if (chart === undefined || paths.length === 0) {
    throw new Error("usage: draw.ts CHART.svg RESULT.json...");
  }
  const texts = await Promise.all(paths.map((path) => readFile(path, "utf8")));
  await writeFile(chart, drawChart(texts.map((text) => JSON.parse(text))));
});
