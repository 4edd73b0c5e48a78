/**
 * Retries with exponential backoff after a lost connection or a 429. Every request of this protocol
 * is idempotent. Half of each pause is jitter, so that refused clients do not return together.
 */
import { ConnectionError, EventLogError } from "./errors.ts";
import type { Timing } from "./timing.ts";

/** Longest honored `Retry-After`. */
const CLIENT_RETRY_AFTER_MS_MAX = 60_000;

/** First backoff; it doubles with each attempt. */
export const CLIENT_BACKOFF_MS: number = 100;
/** Longest backoff, without `Retry-After`. */
export const CLIENT_BACKOFF_MS_MAX: number = 5_000;

const TOO_MANY_REQUESTS = 429;

/** Limits of the retries. */
export interface RetryOptions {
  timing: Timing;
  /** Attempts, including the first. */
  attemptsMax: number;
  /** Aborts pauses. */
  signal: AbortSignal | undefined;
  /** The last attempt starts within this time. */
  timeoutMs?: number;
}

/**
 * Calls `attempt` until it succeeds or may not be repeated.
 * @throws the error of the last attempt, or the reason of the signal.
 */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  { timing, attemptsMax, signal, timeoutMs = Infinity }: RetryOptions,
): Promise<T> {
  const deadlineMs = timing.nowMs() + timeoutMs;
  for (let failures = 1;; failures++) {
    try {
      return await attempt();
    } catch (error) {
      if (failures >= attemptsMax || !mayRepeat(error)) throw error;
      const durationMs = pauseMs(failures, error, timing.random());
      if (timing.nowMs() + durationMs > deadlineMs) throw error;
      await timing.sleep(durationMs, signal);
    }
  }
}

/** Returns whether the request may be repeated after this error. */
export function mayRepeat(error: unknown): error is ConnectionError | EventLogError {
  return error instanceof ConnectionError ||
    error instanceof EventLogError && error.status === TOO_MANY_REQUESTS;
}

/**
 * Returns the pause after a number of consecutive failures, counted from 1.
 * @param error the last failure; its `Retry-After` is added.
 * @param random in [0, 1).
 */
export function pauseMs(failures: number, error: unknown, random: number): number {
  const wholeMs = Math.min(CLIENT_BACKOFF_MS * 2 ** (failures - 1), CLIENT_BACKOFF_MS_MAX);
  const askedMs = error instanceof EventLogError ? error.retryAfterMs ?? 0 : 0;
  return Math.min(askedMs, CLIENT_RETRY_AFTER_MS_MAX) + wholeMs * (1 + random) / 2;
}
