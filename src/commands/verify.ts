/**
 * `verify` verifies a snapshot of the log without changing it or taking a lock. SIGINT or SIGTERM
 * aborts it without a result.
 */
import { once } from "node:events";
import { idTimeMs } from "../event/event_id.ts";
import { formatTimestamp } from "../event/timestamp.ts";
import { fileStorage } from "../log/storage/file_storage.ts";
import { type Damage, type Verification, verifyLog } from "../log/verify/verify.ts";
import type { Options } from "./arguments.ts";
import { type Config, requireSupported } from "./config.ts";
import { requireLogFolder } from "./deployment.ts";
import { CommandError, EXIT_VIOLATION, operationalError } from "./exit.ts";
import { startProgress } from "./progress.ts";
import type { Terminal } from "./terminal.ts";

/**
 * Verifies the log and prints the report.
 * @throws {CommandError} with exit status 3 if a check failed, 1 if none could, 4 if unsupported.
 */
export async function verify(
  config: Config,
  options: Options,
  terminal: Terminal,
): Promise<void> {
  const chain = options.chain !== undefined;
  if (chain) requireSupported(config, "verify --chain");
  const logDir = requireLogFolder(config.dataDir);
  const progress = startProgress(terminal, "verified");
  const settings = { chain, folder: logDir, onProgress: progress.update };
  const verifying = verifyLog(fileStorage(logDir), settings);
  const verification = await Promise.race([verifying, interruption(terminal)])
    .finally(progress.end);
  conclude(logDir, verification, terminal);
}

/** Prints the report. @throws {CommandError} with exit status 3 and a line per damaged file. */
function conclude(
  logDir: string,
  { report, failure, others, lastEventId, head }: Verification,
  terminal: Terminal,
): void {
  terminal.print(`${JSON.stringify(report)}\n`);
  if (failure === null) {
    const end = lastEventId === null
      ? "an empty log"
      : `the log through event ${lastEventId} of ${formatTimestamp(idTimeMs(lastEventId))}`;
    return terminal.report(`verified ${end}, chain head ${head}`);
  }
  const describe = ({ code, message }: Damage) => withoutControls(`${code}: ${logDir}/${message}`);
  const lines = [failure, ...others].map(describe);
  throw new CommandError(EXIT_VIOLATION, lines.join("\n"), { cause: failure });
}

/** Rejects at the first signal. */
async function interruption({ stop }: Terminal): Promise<never> {
  if (!stop.aborted) await once(stop, "abort");
  throw operationalError("interrupted by a signal before verification finished; run verify again");
}

/** Escapes control characters, so that file names in a damaged log cannot control the terminal. */
function withoutControls(text: string): string {
  const escape = (control: string) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replaceAll(/\p{Cc}/gu, escape);
}
