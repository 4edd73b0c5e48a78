/** Defines which failures are retried, and after what pause. */
import { setTimeout } from "node:timers/promises";
import { ConnectionError, EventLogError } from "./errors.ts";

/** A source of time and randomness, injectable for tests. */
export interface Timing {
  /** Returns the time from a monotonic clock in milliseconds. */
  nowMs(): number;
  /** Resolves after `durationMs`; rejects with the signal's abort reason. */
  sleep(durationMs: number, signal: AbortSignal | undefined): Promise<void>;
  /** Returns a random number in [0, 1). */
  random(): number;
}

export const SYSTEM_TIMING: Timing = {
  nowMs: () => performance.now(),
  sleep: (durationMs, signal) =>
    setTimeout(durationMs, undefined, signal && { signal }).catch(() => signal?.throwIfAborted()),
  random: Math.random,
};

/** A failed attempt that will be repeated. */
export interface Retry<Reason = ConnectionError | EventLogError> {
  /** Why the attempt failed. */
  reason: Reason;
  /** Consecutive failures, including this one. */
  failures: number;
  /** Delay in milliseconds. */
  pauseMs: number;
}

/** Maximum `Retry-After` that the client honors. */
const CLIENT_RETRY_AFTER_MS_MAX = 60_000;

/** First backoff; it doubles with each attempt. */
export const CLIENT_BACKOFF_MS: number = 100;
/** Longest backoff, excluding `Retry-After`. */
export const CLIENT_BACKOFF_MS_MAX: number = 5_000;

const TOO_MANY_REQUESTS = 429;

/** Connection failures that a retry cannot fix: the path or its permissions are wrong. */
const FINAL_CODES = new Set(
  ["EACCES", "EINVAL", "ELOOP", "ENAMETOOLONG", "ENOTDIR", "ENOTSOCK", "EPERM", "EPROTOTYPE"],
);

/** Returns whether the request may be repeated after this error. */
export function mayRepeat(error: unknown): error is ConnectionError | EventLogError {
  return error instanceof ConnectionError && !FINAL_CODES.has(systemCodeOf(error) ?? "") ||
    error instanceof EventLogError && error.status === TOO_MANY_REQUESTS;
}

/** Returns the system's error code. `unixFetch()` wraps the system's error in a TypeError. */
export function systemCodeOf(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && typeof cause.code === "string") return cause.code;
  }
  return undefined;
}

/** Returns the pause after failures. Jitter keeps clients from retrying in lockstep. */
export function pauseMs(failures: number, error: unknown, random: number): number {
  const wholeMs = Math.min(CLIENT_BACKOFF_MS * 2 ** (failures - 1), CLIENT_BACKOFF_MS_MAX);
  const askedMs = error instanceof EventLogError ? error.retryAfterMs ?? 0 : 0;
  return Math.min(askedMs, CLIENT_RETRY_AFTER_MS_MAX) + wholeMs * (1 + random) / 2;
}
