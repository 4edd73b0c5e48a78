/** Reports a clock behind the last event's id, or one that jumps while the service runs. */
import { idTimeMs } from "../event/event_id.ts";

const BEHIND_MAX_MS = 60_000;
const JUMP_MAX_MS = 3_600_000;
const REPORT_INTERVAL_MS = 600_000;

/**
 * Returns a function that compares the clock with the last event's id, and with `elapsedMs()`,
 * which the clock does not affect. A clock that stays behind is reported once per ten minutes.
 */
export function watchClock(
  clockMs: () => number,
  elapsedMs: () => number,
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
      report(`the clock jumped by ${Math.round(jumpMs / 1000)} s`);
    }
    if (frontier === null || frontier === seen) return;
    seen = frontier;
    const aheadMs = idTimeMs(frontier) - nowMs;
    if (aheadMs <= BEHIND_MAX_MS || passedMs - reportedMs < REPORT_INTERVAL_MS) return;
    reportedMs = passedMs;
    const behind = `${Math.round(aheadMs / 1000)} s behind the last event ${frontier}`;
    const advice = "until it catches up, new ids are in the future: check the clock";
    report(`the clock is ${behind}; ${advice}`);
  };
}
