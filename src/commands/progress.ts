/** Progress of long-running commands on a terminal. */
import type { Terminal } from "./terminal.ts";

/** Minimum interval between updates on the terminal. */
export const PROGRESS_INTERVAL_MS: number = 200;

export interface Progress {
  /** Updates the amount of work done. Throttled. */
  update(done: number): void;
  /** Clears the display; must precede other output. */
  end(): void;
}

/** Starts showing progress. @param describe formats the amount of work. */
export function startProgress(
  terminal: Pick<Terminal, "showProgress">,
  describe: (done: number) => string,
): Progress {
  let shownAtMs = performance.now();
  return {
    update(done) {
      const nowMs = performance.now();
      if (nowMs - shownAtMs < PROGRESS_INTERVAL_MS) return;
      shownAtMs = nowMs;
      terminal.showProgress(describe(done));
    },
    end: () => terminal.showProgress(""),
  };
}
