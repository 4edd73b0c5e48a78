/**
 * An exclusive flock(2) on a file: the same lock in every runtime, so that each excludes the
 * others. It belongs to the process and ends with it, however it ends; the file stays for ever.
 */
import type { FileLock } from "./held_lock.ts";
import { lockFile as lockFileOnDeno } from "./lock_deno.ts";
import { lockFile as lockFileOnNode } from "./lock_node.ts";

/**
 * Takes the lock on `path`, which is created (0600) when it is missing.
 * @returns null when another process, or another call in this one, holds it.
 * @throws {Error} when `path` is a symlink or no regular file, or the system cannot lock.
 */
export async function lockFile(path: string): Promise<FileLock | null> {
  return "Deno" in globalThis ? await lockFileOnDeno(path) : lockFileOnNode(path);
}
