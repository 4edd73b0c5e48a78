/** Checks whether a run was stable, by comparing its first and last third. */
import { median } from "../../tools/support/median.ts";

/** Maximum ratio of memory, last third to first. Garbage collection makes memory fluctuate. */
const MEMORY_RATIO_MAX = 1.2;
/** Maximum ratio of latency, last third to first. Other load affects a single minute's p99. */
const P99_RATIO_MAX = 1.5;

/** Figures for one interval; memory is null if unavailable. */
export interface IntervalFigures {
  memoryMb: number | null;
  appendP99Ms: number;
  deliveryP99Ms: number;
}

/** Returns a line each for memory, append p99 and delivery p99. Needs at least three intervals. */
export function compareThirds(intervals: readonly IntervalFigures[]): string[] {
  const third = Math.floor(intervals.length / 3);
  const parts = [intervals.slice(0, third), intervals.slice(-third)];
  const [appendFirst, appendLast] = parts.map((part) => median(part.map((i) => i.appendP99Ms)));
  const [followFirst, followLast] = parts.map((part) => median(part.map((i) => i.deliveryP99Ms)));
  const memory = intervals.some(({ memoryMb }) => memoryMb === null)
    ? null
    : parts.map((part) => Math.max(...part.map((i) => i.memoryMb!)));
  return [
    ...memory === null ? [] : [compared("memory", "MB", memory[0]!, memory[1]!, MEMORY_RATIO_MAX)],
    compared("append p99", "ms", appendFirst!, appendLast!, P99_RATIO_MAX),
    compared("delivery p99", "ms", followFirst!, followLast!, P99_RATIO_MAX),
  ];
}

function compared(name: string, unit: string, first: number, last: number, most: number): string {
  const verdict = last <= first * most ? "flat" : `grew by more than ${most}`;
  return `${name}: first third ${first} ${unit}, last third ${last} ${unit}: ${verdict}`;
}
