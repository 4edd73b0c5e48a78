/** The writer lock of a log: whoever holds it is the only process that writes to the folder. */
import { join } from "node:path";
import { LOCK_FILE } from "../log/storage/file_names.ts";
import { lockFile } from "../runtime/file_lock.ts";
import type { FileLock } from "../runtime/held_lock.ts";
import { requireLogFolder } from "./deployment.ts";
import { operationalError } from "./exit.ts";
import { describeError } from "./system_error.ts";

/**
 * Makes this process the writer of a log folder, until the lock is released.
 * @throws {CommandError} exit status 1: no log folder, or a symlink in its place, or another
 *   process is its writer.
 */
export async function takeWriterLock(logDir: string): Promise<FileLock> {
  const path = join(logDir, LOCK_FILE);
  await requireLogFolder(logDir);
  let lock: FileLock | null;
  try {
    lock = await lockFile(path);
  } catch (error) {
    throw operationalError(`cannot take the writer lock: ${describeError(error)}`, error);
  }
  if (lock !== null) return lock;
  throw operationalError(`${path}: held by another process that writes to this log; stop it first`);
}
