/** Shows on a terminal how far long work is. */
import type { Terminal } from "./terminal.ts";

/** Progress of long work is shown so often on a terminal. */
export const PROGRESS_INTERVAL_MS: number = 200;

export interface Progress {
  /** Tells how much has been done; shown unless the last has just been. */
  update(done: number): void;
  /** Must be called before anything else is reported. */
  end(): void;
}

/** @param describe what to show. */
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
