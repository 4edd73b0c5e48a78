/**
 * SIGINT and SIGTERM: the first asks for a clean shutdown, the second ends the process at once with
 * exit status 1, so that a shutdown that hangs can be left without a kill.
 */
import process from "node:process";
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

/** Takes both signals from now on. */
export function catchSignals(report: (line: string) => void): ShutdownSignals {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isRequested = false;
  const onSignal = (signal: string) => {
    if (isRequested) {
      report(`${signal} again: ending at once`);
      process.exit(EXIT_FAILURE);
    }
    isRequested = true;
    resolve();
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    get isRequested() {
      return isRequested;
    },
    requested: promise,
    release() {
      for (const signal of SIGNALS) process.off(signal, onSignal);
    },
  };
}
