/** Retries sessions with a server, with exponential backoff, until one succeeds. */
import { setTimeout as delay } from "node:timers/promises";
import { CLIENT_BACKOFF_MS_MAX, pauseMs } from "../src/client/retry.ts";
import { isFinal } from "./failures.ts";

/** A session that lasted this long resets the backoff. */
const SOUND_SESSION_MS = CLIENT_BACKOFF_MS_MAX;

/**
 * Runs sessions until one returns or `stop` is aborted.
 * @throws an error that a retry cannot fix.
 */
export async function runSessions(
  session: () => Promise<void>,
  stop: AbortSignal,
  report: (line: string) => void,
): Promise<void> {
  for (let failures = 0; !stop.aborted; failures++) {
    const startedMs = performance.now();
    try {
      return await session();
    } catch (error) {
      if (isFinal(error)) throw error;
      if (stop.aborted) return;
      if (performance.now() - startedMs > SOUND_SESSION_MS) failures = 0;
      const durationMs = pauseMs(failures + 1, error, Math.random());
      const reason = error instanceof Error ? error.message : error;
      report(`interrupted: ${reason}; reconnecting in ${Math.round(durationMs)} ms`);
      await delay(durationMs, undefined, { signal: stop }).catch(() => {});
    }
  }
}
