/** Runs a command as the log's writer, the only process that writes to its directory. */
import { join } from "node:path";
import { LOCK_FILE } from "../log/storage/file_names.ts";
import { describeError } from "../log/storage/system_error.ts";
import { lockFile, lockHolder } from "../runtime/file_lock.ts";
import { type Config, requireSupported } from "./config.ts";
import { requireLogFolder } from "./deployment.ts";
import { operationalError } from "./exit.ts";

/**
 * Runs `write` on a deployment's log directory while holding its writer lock.
 * @throws {CommandError} with exit status 1 or 4 if it cannot.
 */
export async function runAsWriter(
  command: string,
  config: Config,
  write: (logDir: string) => Promise<void>,
): Promise<void> {
  requireSupported(config, command);
  const logDir = requireLogFolder(config.dataDir);
  const release = await takeWriterLock(join(logDir, LOCK_FILE));
  try {
    await write(logDir);
  } finally {
    release();
  }
}

async function takeWriterLock(path: string): Promise<() => void> {
  const release = await lockFile(path).catch((error) => {
    throw operationalError(`cannot acquire the writer lock: ${describeError(error)}`, error);
  });
  if (release !== null) return release;
  const pid = lockHolder(path);
  const holder = pid === null ? "another process" : `another process (pid ${pid})`;
  throw operationalError(`${path}: held by ${holder} that writes to this log; stop it first`);
}
