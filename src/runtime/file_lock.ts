/**
 * Takes an exclusive flock(2) on a file, which excludes other processes in any runtime. The lock is
 * released when the process ends; the file is never deleted.
 */
import { lstatSync } from "node:fs";
import { lockFile as lockFileOnDeno } from "./lock_deno.ts";
import { lockFile as lockFileOnNode } from "./lock_node.ts";

/**
 * Locks `path`, which is created with mode 0600 if missing.
 * @returns a function that releases the lock; null if it is held, also by this process.
 * @throws {Error} if `path` is a symlink or not a regular file, or the system cannot lock it.
 */
export async function lockFile(path: string): Promise<(() => void) | null> {
  // For a symlink, this gives a clearer message than the ELOOP from open(2).
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat !== undefined && !stat.isFile()) throw new Error(`${path}: not a regular file`);
  return "Deno" in globalThis ? await lockFileOnDeno(path) : lockFileOnNode(path);
}
