/** Alternates measurements so that other load on the machine affects them all equally. */
import { progress } from "../support/options.ts";
import type { Series } from "./comparison.ts";
import type { SubjectName, Variant } from "./rows.ts";

/** A measurement made once per round. */
export interface Turn {
  series: Series;
  variant: Variant;
}

export function turnOf(row: string, subject: SubjectName, variant: Variant): Turn {
  const { name, isSameWork } = variant;
  return { series: { row, subject, variant: name, isSameWork, rounds: [] }, variant };
}

/** Makes each measurement `rounds` times, alternating within each round. */
export async function takeTurns(turns: Turn[], rounds: number): Promise<Series[]> {
  for (let round = 1; round <= rounds; round++) {
    for (const { series, variant } of turns) {
      progress(`round ${round}/${rounds}: ${series.row}, ${series.subject} ${series.variant}`);
      series.rounds.push(await variant.measure());
    }
  }
  return turns.map(({ series }) => series);
}
