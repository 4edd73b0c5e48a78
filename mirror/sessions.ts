/** Retries sessions with a server, with exponential backoff, until one succeeds. */
import { setTimeout as delay } from "node:timers/promises";
import { CLIENT_BACKOFF_MS_MAX, pauseMs } from "../src/client/retry.ts";
import { operationalError } from "../src/commands/exit.ts";
import { isFinal } from "./failures.ts";

/** A session that lasted this long resets the backoff. */
const SOUND_SESSION_MS = CLIENT_BACKOFF_MS_MAX;
const IDLE_CHECK_MS = 1000;
/** How long a command with `--once` tries without progress before it gives up. */
export const ONCE_IDLE_MS_MAX = 60_000;
/** The same for `restore`, which may have to wait until a cluster has recovered. */
export const RESTORE_IDLE_MS_MAX = 300_000;

export interface SessionOptions {
  stop: AbortSignal;
  report: (line: string) => void;
  /** The command fails after this long without progress; Infinity to try forever. */
  idleMsMax: number;
}

/**
 * Runs sessions until one returns or `stop` is aborted.
 * @param session calls `onProgress` whenever it gets ahead.
 * @throws an error that a retry cannot fix.
 * @throws {CommandError} after `idleMsMax` without progress, even if a session is still waiting.
 */
export async function runSessions(
  session: (onProgress: () => void) => Promise<void>,
  { stop, report, idleMsMax }: SessionOptions,
): Promise<void> {
  const gaveUp = Promise.withResolvers<never>();
  const ended = new AbortController();
  let reason = "the server did not respond";
  let progressMs = performance.now();
  const timer = setInterval(() => {
    if (performance.now() - progressMs < idleMsMax) return;
    gaveUp.reject(
      operationalError(`gave up after ${idleMsMax / 1000} s without progress: ${reason}`),
    );
  }, Math.min(IDLE_CHECK_MS, idleMsMax));
  const onProgress = () => void (progressMs = performance.now());
  const onFailure = (error: unknown, durationMs: number) => {
    reason = error instanceof Error ? error.message : `${error}`;
    report(`interrupted: ${reason}; reconnecting in ${Math.round(durationMs)} ms`);
  };
  try {
    const signal = AbortSignal.any([stop, ended.signal]);
    await Promise.race([retry(() => session(onProgress), signal, onFailure), gaveUp.promise]);
  } finally {
    clearInterval(timer);
    ended.abort();
  }
}

async function retry(
  session: () => Promise<void>,
  stop: AbortSignal,
  onFailure: (error: unknown, durationMs: number) => void,
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
      onFailure(error, durationMs);
      await delay(durationMs, undefined, { signal: stop }).catch(() => {});
    }
  }
}
