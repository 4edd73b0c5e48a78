/**
 * SIGINT and SIGTERM: the first asks for a clean end, the second ends the process at once with exit
 * status 1, so that an end that hangs can be left without a kill. Neither gives the exit status of
 * a process that was ended by a signal.
 */
import process from "node:process";
import { endProcess } from "../runtime/end_process.ts";
import { EXIT_FAILURE } from "./exit.ts";

export interface ShutdownSignals {
  /** Whether the first signal has come. */
  readonly isRequested: boolean;
  /** Resolves at the first signal. */
  readonly requested: Promise<void>;
  /** Gives the signals their default effect again. */
  release(): void;
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/**
 * Takes both signals from now on.
 * @param echoMs A signal that comes again within this time is the same one: whatever started this
 *   process repeats a Ctrl-C that the terminal has sent to this process too.
 */
export function catchSignals(report: (line: string) => void, echoMs = 0): ShutdownSignals {
  const { promise, resolve } = Promise.withResolvers<void>();
  let first: { signal: string; atMs: number } | null = null;
  const onSignal = (signal: string) => {
    const nowMs = performance.now();
    if (first === null) {
      first = { signal, atMs: nowMs };
      return resolve();
    }
    if (signal === first.signal && nowMs - first.atMs < echoMs) return;
    report(`${signal} again: ending at once`);
    endProcess(EXIT_FAILURE);
  };
  // Deno 2.7 does not tell a listener which signal it is called for.
  const listeners = SIGNALS.map((signal) => ({ signal, listener: () => onSignal(signal) }));
  for (const { signal, listener } of listeners) process.on(signal, listener);
  return {
    get isRequested() {
      return first !== null;
    },
    requested: promise,
    release() {
      for (const { signal, listener } of listeners) process.off(signal, listener);
    },
  };
}
