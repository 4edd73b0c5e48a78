/** Retries, and the option `--wait`: how long to wait for a service that starts later. */
import process from "node:process";
import type { Retry } from "../../mod.ts";
import { UsageError } from "./run_example.ts";

export const WAIT_OPTION = { type: "string", default: "60" } as const;

/** Line of the usage. */
export const WAIT_USAGE = "--wait SECONDS   wait this long for the service to start (default: 60)";

/** Returns the `socketWaitMs` of the client. */
export function parseWait(text: string): number {
  const seconds = Number(text);
  if (text !== "" && seconds >= 0 && seconds <= 86_400) return seconds * 1000;
  throw new UsageError(`--wait must be a number of seconds, got ${text}`);
}

export function reportRetry({ reason, pauseMs }: Retry): void {
  process.stderr.write(`${reason.message}; retrying in ${Math.round(pauseMs)} ms\n`);
}
