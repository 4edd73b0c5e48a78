/**
 * `verify`: read-only analysis of one coherent log inventory. Takes no lock and changes nothing.
 */
import { join } from "node:path";
import { fileStorage } from "../log/file_storage.ts";
import { type Verification, verifyLog } from "../log/verify.ts";
import { requireSupported } from "./capability.ts";
import type { Config } from "./config.ts";
import { CommandError, EXIT_VIOLATION, operationalError } from "./exit.ts";
import { startProgress } from "./progress.ts";
import type { Terminal } from "./terminal.ts";

export interface VerifyOptions {
  /** Whether to recompute all hashes. */
  chain: boolean;
  terminal: Terminal;
}

/**
 * Verifies the log and prints the report.
 * @throws {CommandError} exit status 3: a check does not hold; 1: there is no log; 4: a mode or
 *   an anchor that `--chain` does not support.
 * @throws {UnsupportedFormatError} a newer program wrote the log.
 */
export async function verify(config: Config, { chain, terminal }: VerifyOptions): Promise<void> {
  if (chain) requireSupported(config, "verify --chain");
  const logDir = join(config.dataDir, "log");
  const storage = fileStorage(logDir);
  if (await storage.list(".") === null) {
    throw operationalError(`there is no folder ${logDir}; run init, or set [data] dir`);
  }
  const progress = startProgress(terminal, (events) => `verified ${events} events`);
  let verification: Verification;
  try {
    verification = await verifyLog(storage, { chain, onProgress: progress.update });
  } finally {
    progress.end();
  }
  const { report, failure } = verification;
  terminal.print(`${JSON.stringify(report)}\n`);
  if (failure === null) return;
  const message = `${failure.code}: ${logDir}/${failure.message}`;
  throw new CommandError(EXIT_VIOLATION, withoutControls(message), { cause: failure });
}

/** A damaged log may name anything; the terminal is not to obey it. */
function withoutControls(text: string): string {
  const escape = (control: string) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replaceAll(/\p{Cc}/gu, escape);
}
