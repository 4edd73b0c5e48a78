/**
 * Handles SIGINT, SIGTERM and SIGHUP: the first requests a clean shutdown, the second exits
 * immediately with status 1. The default action of these signals, termination, never applies.
 * SIGUSR1 leaves no inspector open.
 */
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { endProcess } from "../runtime/end_process.ts";
import { EXIT_FAILURE } from "./exit.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/**
 * A signal repeated within this time is ignored, since the terminal sends Ctrl-C to all processes
 * and a parent process may forward it.
 */
const ECHO_MS = 100;
/** Time after which Deno has opened its inspector. */
const INSPECTOR_MS = 100;

/** Handles these signals from now on. The first one aborts the returned signal. */
export function catchSignals(report: (line: string) => void): AbortSignal {
  const stop = new AbortController();
  let first: { signal: string; atMs: number } | null = null;
  const onSignal = (signal: string) => {
    const nowMs = performance.now();
    if (first === null) {
      first = { signal, atMs: nowMs };
      return stop.abort();
    }
    if (signal === first.signal && nowMs - first.atMs < ECHO_MS) return;
    report(`second signal (${signal}): exiting immediately`);
    endProcess(EXIT_FAILURE);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  // By default, SIGUSR1 opens Node's inspector. Deno opens one anyway, to every local user.
  process.on("SIGUSR1", () =>
    void setTimeout(INSPECTOR_MS).then(() => import("node:inspector"))
      .then(({ default: { close } }) => close()).catch(({ message }) => report(`${message}`)));
  return stop.signal;
}
