/** Shows the progress of long-running commands on a terminal. */
import type { Output } from "./terminal.ts";

/** Minimum interval between updates on the terminal. */
export const PROGRESS_INTERVAL_MS: number = 200;

/** Starts showing progress. @param verb past participle shown first, such as `verified`. */
export function startProgress(terminal: Pick<Output, "showProgress">, verb: string) {
  let shownAtMs = performance.now();
  return {
    /** Shows the number of events done and the total known so far. Throttled. */
    update(done: number, total: number): void {
      const nowMs = performance.now();
      if (nowMs - shownAtMs < PROGRESS_INTERVAL_MS) return;
      shownAtMs = nowMs;
      const ofTotal = total > done ? ` of ${counted(total)}` : "";
      terminal.showProgress(`${verb} ${counted(done)}${ofTotal} events`);
    },
    /** Clears the display; must precede other output. */
    end: () => terminal.showProgress(""),
  };
}

/** Formats a number with thousands separators: `92,000`. */
export function counted(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}
