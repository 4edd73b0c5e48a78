/** Retries sessions with a server, with exponential backoff, until one succeeds. */
import { setTimeout as delay } from "node:timers/promises";
import { isFinal } from "./failures.ts";

/** Backoff after the first failure. It doubles with each consecutive failure. */
const PAUSE_MS = 100;
const PAUSE_MS_MAX = 5000;
/** A session that lasted this long resets the backoff. */
const SOUND_SESSION_MS = PAUSE_MS_MAX;

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
      // Half of the pause is jitter, so that mirrors that fail together do not retry together.
      const wholeMs = Math.min(PAUSE_MS * 2 ** failures, PAUSE_MS_MAX);
      const pauseMs = wholeMs * (1 + Math.random()) / 2;
      const reason = error instanceof Error ? error.message : error;
      report(`interrupted: ${reason}; reconnecting in ${Math.round(pauseMs)} ms`);
      await delay(pauseMs, undefined, { signal: stop }).catch(() => {});
    }
  }
}
