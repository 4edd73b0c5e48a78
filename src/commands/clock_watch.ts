/**
 * Reports a clock that event ids cannot follow: one that is behind the last id, so that new ids stay
 * in the future, or one that jumps while the service runs.
 */

const BEHIND_MAX_MS = 60_000;
const JUMP_MAX_MS = 3_600_000;
const REPORT_INTERVAL_MS = 600_000;

export interface Clocks {
  /** Returns Unix milliseconds. */
  clockMs: () => number;
  /** Returns the time since some moment, unaffected by the clock. */
  elapsedMs: () => number;
}

/**
 * Returns a function that compares the clock with the last event's id and with the time passed since
 * its last call. A clock that stays behind is reported once per ten minutes, after a commit.
 */
export function watchClock(
  { clockMs, elapsedMs }: Clocks,
  report: (line: string) => void,
): (frontier: string | null) => void {
  let offsetMs = clockMs() - elapsedMs();
  let reportedMs = -Infinity;
  let seen: string | null = null;
  return (frontier) => {
    const [nowMs, passedMs] = [clockMs(), elapsedMs()];
    const jumpMs = nowMs - passedMs - offsetMs;
    offsetMs += jumpMs;
    if (Math.abs(jumpMs) > JUMP_MAX_MS) {
      report(`the clock jumped: it is ${seconds(jumpMs)} the time that has passed`);
    }
    if (frontier === null || frontier === seen) return;
    seen = frontier;
    const aheadMs = parseInt(frontier.slice(0, 8) + frontier.slice(9, 13), 16) - nowMs;
    if (aheadMs <= BEHIND_MAX_MS || passedMs - reportedMs < REPORT_INTERVAL_MS) return;
    reportedMs = passedMs;
    report(
      `the clock is ${seconds(-aheadMs)} the last event ${frontier}; until it has caught up, ` +
        "new event ids are in the future, too: check the clock",
    );
  };
}

function seconds(durationMs: number): string {
  return `${Math.round(Math.abs(durationMs) / 1000)} s ${durationMs < 0 ? "behind" : "ahead of"}`;
}
