/** A log's figures by name, in print order, and tables that show several logs side by side. */
import { rounded, type Row } from "../support/report.ts";

/** Figures by name; null if unavailable on this system. */
export type Figures = Record<string, number | null>;

/** Limits for some figures; the others are only reported. */
const GOALS: Record<string, string> = {
  "check of a new batch ms": "empty + 0.2",
  "duplicate p50 ms": "10",
  "start ms": "1,000",
  "streams page, first: p50 ms": "20",
  "streams page, middle: p50 ms": "20",
  "streams page, anchored: p50 ms": "200",
  "serve peak MB": "419",
  "seal peak MB": "419",
  "verify peak MB": "419",
  "verify --chain peak MB": "419",
};

/** Returns a row per figure with a column per log, and the last log's figure over the first's. */
export function sideBySide(columns: { name: string; figures: Figures }[]): Row[] {
  const first = columns[0]!.figures;
  const last = columns.at(-1)!.figures;
  return Object.keys(first).map((row) => ({
    row,
    ...Object.fromEntries(columns.map(({ name, figures }) => [name, figures[row] ?? null])),
    "last/first": ratio(last[row], first[row]),
    "at most": GOALS[row] ?? null,
  }));
}

function ratio(last: number | null | undefined, first: number | null | undefined): number | null {
  if (last === undefined || last === null || !first) return null;
  return rounded(last / first, 2);
}
