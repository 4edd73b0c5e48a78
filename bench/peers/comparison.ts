/**
 * The comparison table: the median of each figure, and its ratios to the best peer, to the peer
 * that does the same work, and to a bare server.
 */
import { rounded, type Row } from "../support/report.ts";
import { type Measurement, NOT_MEASURED } from "./measurement.ts";
import { type Figure, FIGURES, type SubjectName } from "./rows.ts";
import { median } from "../../tools/support/median.ts";

/** All measurements of one variant of a row, one per round. */
export interface Series {
  row: string;
  subject: SubjectName;
  variant: string;
  isSameWork: boolean;
  rounds: Measurement[];
}

/** Returns a goal, since no peer has sealed history: half the service's tail replay rate. */
export function segmentsGoal(series: Series[]): Series[] {
  const tail = series.find(({ row, subject }) => row === "replay-tail" && subject === "ours");
  if (tail === undefined) return [];
  const rounds = tail.rounds.map(({ eventsPerSecond }) => ({
    ...NOT_MEASURED,
    eventsPerSecond: eventsPerSecond === null ? null : eventsPerSecond / 2,
  }));
  const variant = "half of the tail";
  return [{ row: "replay-segments", subject: "goal", variant, isSameWork: false, rounds }];
}

/** A load generator above this share of a core is considered the bottleneck. */
const CLIENT_SHARE_MAX = 0.85;
const CLIENT_LIMITED = "!";

/** Returns a line per measured figure: the service, best peer, same-work peer and floor. */
export function comparisonRows(series: Series[]): Row[] {
  return FIGURES.filter(({ row }) => series.some((each) => each.row === row))
    .map((figure) => comparisonRow(figure, series.filter((each) => each.row === figure.row)));
}

/** Returns a line per variant, with its resource usage. */
export function detailRows(series: Series[]): Row[] {
  return series.map((each) => {
    const of = (key: keyof Measurement) => medianOf(each.rounds, key);
    const rates = each.rounds.map((round) => round.eventsPerSecond ?? 0);
    return {
      "row": each.row,
      "who": each.subject,
      "how": each.variant,
      "events/s": roundedOrNull(of("eventsPerSecond"), 0),
      "least": Math.round(Math.min(...rates)),
      "most": Math.round(Math.max(...rates)),
      "p50 ms": roundedOrNull(of("p50Ms"), 3),
      "p99 ms": roundedOrNull(of("p99Ms"), 3),
      "CPU ms/1,000": cpuCell(each),
      "events/fsync": roundedOrNull(of("eventsPerSync"), 1),
      "client %": markedPercent(of("clientShare")),
      "others %": percent(of("othersShare")),
    };
  });
}

function comparisonRow(figure: Figure, series: Series[]): Row {
  const ours = series.find(({ subject }) => subject === "ours");
  const floor = series.find(({ subject }) => subject === "floor");
  const peers = series.filter((each) => each !== ours && each !== floor);
  const best = bestOf(figure, peers);
  const same = bestOf(figure, peers.filter(({ isSameWork }) => isSameWork));
  return {
    "row": figure.label,
    "unit": figure.value === "eventsPerSecond" ? "events/s" : "ms",
    "ours": figureCell(figure, ours),
    "best peer": figureCell(figure, best),
    "by": nameOf(best),
    "x best": ratio(figure, ours, best),
    "same work": figureCell(figure, same),
    "same by": nameOf(same),
    "x same": ratio(figure, ours, same),
    "floor": figureCell(figure, floor),
    "x floor": ratio(figure, ours, floor),
    "CPU ms/1,000": cpuCell(ours),
    "best CPU": cpuCell(best),
    "same CPU": cpuCell(same),
    "events/fsync": ours ? roundedOrNull(medianOf(ours.rounds, "eventsPerSync"), 1) : null,
    "client %": shareCell([ours, best, same]),
  };
}

/** Returns the variant with the best median; undefined if none has one. */
function bestOf(figure: Figure, series: Series[]): Series | undefined {
  const measured = series.filter(({ rounds }) => medianOf(rounds, figure.value) !== null);
  const value = ({ rounds }: Series) => medianOf(rounds, figure.value)!;
  const sign = figure.value === "eventsPerSecond" ? -1 : 1;
  return measured.toSorted((a, b) => sign * (value(a) - value(b)))[0];
}

/** Returns how many times better the service is. Above 1, the service is ahead. */
function ratio(figure: Figure, ours: Series | undefined, peer: Series | undefined): number | null {
  if (ours === undefined || peer === undefined) return null;
  const [own, other] = [medianOf(ours.rounds, figure.value), medianOf(peer.rounds, figure.value)];
  if (own === null || other === null) return null;
  const ratio = figure.value === "eventsPerSecond" ? own / other : other / own;
  return ratio < 0.1 ? Number(ratio.toPrecision(1)) : rounded(ratio, 2);
}

function figureCell({ value }: Figure, series: Series | undefined): number | null {
  if (series === undefined) return null;
  return roundedOrNull(medianOf(series.rounds, value), value === "eventsPerSecond" ? 0 : 3);
}

/** Returns the server's CPU milliseconds per 1,000 events. */
function cpuCell(series: Series | undefined): number | null {
  if (series === undefined) return null;
  const seconds = medianOf(series.rounds, "serverCpuSecondsPer1000");
  return seconds === null ? null : rounded(seconds * 1000, 2);
}

function nameOf(series: Series | undefined): string | null {
  return series === undefined ? null : `${series.subject} ${series.variant}`;
}

/** Returns the CPU shares of the load generators, marked if one was the bottleneck. */
function shareCell(series: (Series | undefined)[]): string {
  return series.map((each) =>
    markedPercent(each ? medianOf(each.rounds, "clientShare") : null) ?? "-"
  )
    .join(" / ");
}

function markedPercent(share: number | null): string | null {
  if (share === null) return null;
  return `${percent(share)}${share > CLIENT_SHARE_MAX ? CLIENT_LIMITED : ""}`;
}

function percent(share: number | null): number | null {
  return share === null ? null : Math.round(share * 100);
}

/** Returns the median across the rounds in which a value is known; null if there are none. */
export function medianOf(rounds: Measurement[], key: keyof Measurement): number | null {
  const values = rounds.map((round) => round[key]).filter((value) => value !== null);
  return values.length === 0 ? null : median(values);
}

function roundedOrNull(value: number | null, digits: number): number | null {
  return value === null ? null : rounded(value, digits);
}
