/**
 * An exclusive flock(2) on a file, so that all runtimes exclude each other. The lock ends with the
 * process; the file is never deleted.
 */
import { lockFile as lockFileOnDeno } from "./lock_deno.ts";
import { lockFile as lockFileOnNode } from "./lock_node.ts";

/** A lock that is held until it is released or the process ends. */
export interface FileLock {
  /** Releases the lock. Idempotent. */
  release(): void;
}

/**
 * Locks `path`, which is created (0600) if missing.
 * @returns null when another process, or another call in this one, holds the lock.
 * @throws {Error} `path` is a symlink or not a regular file, or the system cannot lock it.
 */
export async function lockFile(path: string): Promise<FileLock | null> {
  let close = "Deno" in globalThis ? await lockFileOnDeno(path) : lockFileOnNode(path);
  if (close === null) return null;
  return {
    release() {
      close?.();
      close = null;
    },
  };
}
