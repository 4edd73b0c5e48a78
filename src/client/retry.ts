/**
 * Asking again. Only after a lost connection or a 429, where the same request may be sent once
 * more: every request of this protocol is safe to repeat. Pauses double, and half of each is
 * chance, so that clients that were refused together do not come back together.
 */
import { ConnectionError, EventLogError } from "./errors.ts";
import type { Timing } from "./timing.ts";

/** The longest `Retry-After` that is waited for. */
const CLIENT_RETRY_AFTER_MS_MAX = 60_000;

/** The first pause between attempts; each further one doubles, up to the longest. */
export const CLIENT_BACKOFF_MS: number = 100;
/** The longest pause between two attempts that a client chooses by itself. */
export const CLIENT_BACKOFF_MS_MAX: number = 5_000;

const TOO_MANY_REQUESTS = 429;

/** How far asking again may go. */
export interface RetryOptions {
  timing: Timing;
  /** Attempts in all. */
  attemptsMax: number;
  /** Ends pauses. */
  signal: AbortSignal | undefined;
  /** No attempt begins later than this after the first. */
  timeoutMs?: number;
}

/**
 * Calls `attempt` until it has an outcome.
 * @throws what the last attempt threw, or the reason of the signal.
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

/** Whether the same request may be sent again after this error. */
export function mayRepeat(error: unknown): error is ConnectionError | EventLogError {
  return error instanceof ConnectionError ||
    error instanceof EventLogError && error.status === TOO_MANY_REQUESTS;
}

/**
 * The pause after so many failures in a row, the first being 1.
 * @param error the last failure, whose `Retry-After` comes on top.
 * @param random from 0 to below 1.
 */
export function pauseMs(failures: number, error: unknown, random: number): number {
  const wholeMs = Math.min(CLIENT_BACKOFF_MS * 2 ** (failures - 1), CLIENT_BACKOFF_MS_MAX);
  const askedMs = error instanceof EventLogError ? error.retryAfterMs ?? 0 : 0;
  return Math.min(askedMs, CLIENT_RETRY_AFTER_MS_MAX) + wholeMs * (1 + random) / 2;
}
