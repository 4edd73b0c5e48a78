/**
 * Runs work under a signal that follows the caller's and also aborts when time is up.
 * @param timeUp Makes what the signal is aborted with, if the caller's is not before.
 */
export async function withTimeLimit<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { limitMs, signal, timeUp }: {
    limitMs: number;
    signal: AbortSignal | undefined;
    timeUp: () => Error;
  },
): Promise<T> {
  signal?.throwIfAborted();
  const limited = new AbortController();
  const abort = () => limited.abort(signal!.reason);
  const timer = setTimeout(() => limited.abort(timeUp()), limitMs);
  signal?.addEventListener("abort", abort);
  try {
    return await work(limited.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}
