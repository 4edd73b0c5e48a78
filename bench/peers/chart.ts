/**
 * Draws results from this benchmark as an SVG image. Each figure is a group of bars with its own
 * scale: the service on each measured runtime, PostgreSQL doing the same work, and Redis.
 */
import { type Report, rounded, type Row } from "../support/report.ts";
import { type Figure, FIGURES, INGEST_ROWS, SERVED_ROWS } from "./rows.ts";

/** The result file from one run; see `--json`. */
export interface PeersResult extends Report {
  details: Row[];
}

interface Bar {
  name: string;
  /** The color of the bar. */
  style: "first" | "second" | "same" | "other";
  value: number;
}

interface Group {
  title: string;
  unit: string;
  bars: Bar[];
}

const COLUMNS = 3;
const GROUP_WIDTH = 276;
const MARGIN = 16;
const HEAD_HEIGHT = 62;
const GROUP_HEAD_HEIGHT = 26;
const BAR_HEIGHT = 14;
const BAR_STEP = 18;
const GROUP_GAP = 26;
/** X position of the bars in their group, to the right of their names. */
const BAR_X = 76;
const BAR_WIDTH_MAX = 118;
const TEXT_GAP = 6;
/** Distance from the top of a bar to the baseline of its labels. */
const BASELINE = 11;

const TITLE = "The service compared with PostgreSQL doing the same work, and with Redis";
const OURS: Record<string, string> = { node: "ours, Node", deno: "ours, Deno" };
const DETAIL_COLUMNS: Record<Figure["value"], string> = {
  eventsPerSecond: "events/s",
  p50Ms: "p50 ms",
  p99Ms: "p99 ms",
};

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

/**
 * @param results one per service runtime. The best of a peer's figures is drawn.
 * @throws {Error} if a result is from a different benchmark, or there is no figure to draw.
 */
export function drawChart(results: PeersResult[]): string {
  for (const { benchmark } of results) {
    if (benchmark !== "peers") throw new Error(`not a result of bench/peers: ${benchmark}`);
  }
  const groups = FIGURES.filter(({ row }) => SERVED_ROWS.includes(row))
    .map((figure) => groupOf(figure, results))
    .filter(({ bars }) => bars.length > 0);
  if (groups.length === 0) throw new Error("the results have no ingest, replay or delivery row");
  const barsMax = Math.max(...groups.map(({ bars }) => bars.length));
  const groupHeight = GROUP_HEAD_HEIGHT + barsMax * BAR_STEP + GROUP_GAP;
  const width = COLUMNS * GROUP_WIDTH + 2 * MARGIN;
  const height = HEAD_HEIGHT + Math.ceil(groups.length / COLUMNS) * groupHeight;
  const conditions = `${results[0]!.processors} vCPUs, Unix sockets, 300-byte payloads, ` +
    "every response after its fsync. Each group has its own scale.";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img"`,
    `  aria-labelledby="title" font-family="system-ui, sans-serif" font-size="12">`,
    `<title id="title">${TITLE}</title>`,
    `<style>${STYLE}</style>`,
    `<rect class="page" width="${width}" height="${height}"/>`,
    `<text x="${MARGIN}" y="26" font-size="16" font-weight="600">${TITLE}</text>`,
    `<text class="unit" x="${MARGIN}" y="46">${conditions}</text>`,
    ...groups.map((group, index) => {
      const x = MARGIN + index % COLUMNS * GROUP_WIDTH;
      const y = HEAD_HEIGHT + Math.floor(index / COLUMNS) * groupHeight;
      return drawGroup(group, x, y);
    }),
    "</svg>\n",
  ].join("\n");
}

function drawGroup({ title, unit, bars }: Group, x: number, y: number): string {
  const valueMax = Math.max(...bars.map(({ value }) => value));
  const lines = bars.map(({ name, style, value }, index) => {
    const top = GROUP_HEAD_HEIGHT + index * BAR_STEP;
    const width = rounded(value / valueMax * BAR_WIDTH_MAX, 1);
    const baseline = top + BASELINE;
    const valueX = rounded(BAR_X + width + TEXT_GAP, 1);
    return `  <text class="name" x="${BAR_X - TEXT_GAP}" y="${baseline}" text-anchor="end">` +
      `${name}</text>` +
      `<rect class="${style}" x="${BAR_X}" y="${top}" width="${width}" height="${BAR_HEIGHT}"/>` +
      `<text x="${valueX}" y="${baseline}">${value.toLocaleString("en")}</text>`;
  });
  const head = `  <text y="${BASELINE}" font-weight="600">${title}` +
    `<tspan class="unit" font-weight="400"> ${unit}</tspan></text>`;
  return [`<g transform="translate(${x} ${y})">`, head, ...lines, "</g>"].join("\n");
}

function groupOf(figure: Figure, results: PeersResult[]): Group {
  const rows = results.map(({ rows }) => rows.find(({ row }) => row === figure.label));
  const bars = results.flatMap(({ server }, run) => {
    const style = run === 0 ? "first" : "second";
    return barOf(OURS[server] ?? `ours, ${server}`, style, [rows[run]?.["ours"]], figure);
  });
  const redis = results.flatMap(({ details }) =>
    details.filter(({ row, who }) => row === figure.row && who === "Redis")
      .map((row) => row[DETAIL_COLUMNS[figure.value]])
  );
  bars.push(
    ...barOf("PostgreSQL", "same", rows.map((row) => row?.["same work"]), figure),
    ...barOf("Redis", "other", redis, figure),
  );
  return { title: titleOf(figure), unit: isRate(figure) ? "events/s" : "ms, less is better", bars };
}

/** Returns a bar for the best of several values; none if nothing was measured. */
function barOf(name: string, style: Bar["style"], cells: unknown[], figure: Figure): Bar[] {
  const values = cells.filter((cell) => typeof cell === "number");
  if (values.length === 0) return [];
  const best = isRate(figure) ? Math.max(...values) : Math.min(...values);
  return [{ name, style, value: rounded(best, isRate(figure) ? 0 : 2) }];
}

function isRate({ value }: Figure): boolean {
  return value === "eventsPerSecond";
}

function titleOf({ row, value }: Figure): string {
  const ingest = INGEST_ROWS[row];
  if (ingest !== undefined) {
    const { clients, batchEvents } = ingest;
    const events = batchEvents.toLocaleString("en");
    return `Batches of ${events}, ${clients} client${clients === 1 ? "" : "s"}`;
  }
  return row === "replay-tail" ? "Replay of the tail" : `Delivery, ${value.slice(0, 3)}`;
}
