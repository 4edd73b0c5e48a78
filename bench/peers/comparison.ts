/**
 * The comparison table: the median of each figure, and its ratios to the best peer, to the peer
 * that does the same work, and to a bare server.
 */
import { progress } from "../support/options.ts";
import { formatClientShare, rounded, type Row } from "../support/report.ts";
import { median } from "../../tools/support/median.ts";
import type { Measurement } from "./measurement.ts";
import { type Figure, FIGURES, type Subject, type Variant } from "./rows.ts";

/** All measurements of one variant of a row, one per round. */
export interface Series extends Pick<Variant, "row" | "subject" | "variant" | "isSameWork"> {
  rounds: Measurement[];
}

/** Makes each measurement `rounds` times, alternating so that other load affects all equally. */
export async function takeTurns(variants: Variant[], rounds: number): Promise<Series[]> {
  const series = variants.map(({ measure: _, ...variant }): Series => ({ ...variant, rounds: [] }));
  for (let round = 1; round <= rounds; round++) {
    for (const [index, { row, subject, variant, measure }] of variants.entries()) {
      progress(`round ${round}/${rounds}: ${row}, ${subject} ${variant}`);
      series[index]!.rounds.push(await measure());
    }
  }
  return series;
}

/** Returns a line per measured figure: the service, best peer, same-work peer and floor. */
export function comparisonRows(series: Series[]): Row[] {
  return FIGURES.flatMap((figure) => {
    const all = series.filter(({ row }) => row === figure.row);
    return all.length === 0 ? [] : [comparisonRow(figure, all)];
  });
}

function comparisonRow({ label, value }: Figure, series: Series[]): Row {
  const isRate = value === "eventsPerSecond";
  const find = (name: Subject) => series.find(({ subject }) => subject === name);
  const bestOf = (peers: Series[]) => {
    const measured = peers.filter((peer) => medianOf(peer, value) !== null);
    measured.sort((a, b) => medianOf(a, value)! - medianOf(b, value)!);
    return measured.at(isRate ? -1 : 0);
  };
  const [ours, floor] = [find("ours"), find("floor")];
  const peers = series.filter((each) => each !== ours && each !== floor);
  const [best, same] = [bestOf(peers), bestOf(peers.filter(({ isSameWork }) => isSameWork))];
  const figure = (each?: Series) => cell(each, value, isRate ? 0 : 3);
  const nameOf = (each?: Series) => each === undefined ? null : `${each.subject} ${each.variant}`;
  /** How many times better the service is. Above 1, the service is ahead. */
  const ratio = (peer?: Series) => {
    const [own, other] = [medianOf(ours, value), medianOf(peer, value)];
    if (own === null || other === null) return null;
    const times = isRate ? own / other : other / own;
    return times < 0.1 ? Number(times.toPrecision(1)) : rounded(times, 2);
  };
  return {
    "row": label,
    "unit": isRate ? "events/s" : "ms",
    "ours": figure(ours),
    "best peer": figure(best),
    "by": nameOf(best),
    "x best": ratio(best),
    "same work": figure(same),
    "same by": nameOf(same),
    "x same": ratio(same),
    "Redis": figure(find("Redis")),
    "floor": figure(floor),
    "x floor": ratio(floor),
    "CPU ms/1,000": cell(ours, "serverCpuMsPer1000", 2),
    "same CPU": cell(same, "serverCpuMsPer1000", 2),
    "floor CPU": cell(floor, "serverCpuMsPer1000", 2),
    "client %": [ours, best, same].map((each) => formatClientShare(medianOf(each, "clientShare")))
      .join(" / "),
  };
}

/** Returns the median across the rounds in which a value is known; null if there are none. */
function medianOf(series: Series | undefined, key: keyof Measurement): number | null {
  const values = series?.rounds.map((round) => round[key]).filter((value) => value !== null) ?? [];
  return values.length === 0 ? null : median(values);
}

function cell(series: Series | undefined, key: keyof Measurement, digits: number): number | null {
  const value = medianOf(series, key);
  return value === null ? null : rounded(value, digits);
}
