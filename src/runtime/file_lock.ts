/**
 * Takes an exclusive flock(2) on a file, which excludes other processes in any runtime. The lock is
 * released when the process ends; the file is never deleted.
 */
import { globSync, lstatSync, readFileSync, statSync } from "node:fs";
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

/**
 * Returns the id of the process that holds the lock on `path`; null if it cannot be told. Linux
 * shows the locks of each open file to its user. `/proc/locks` would name the `flock` program.
 */
export function lockHolder(path: string): number | null {
  // Deno shows /proc only to a program with all permissions, and would ask for them on a terminal.
  if ("Deno" in globalThis && Deno.permissions.querySync({ name: "ffi" }).state !== "granted") {
    return null;
  }
  const lock = new RegExp(`FLOCK .*:${statSync(path).ino} `);
  for (const info of globSync("/proc/[0-9]*/fdinfo/*")) {
    try {
      if (lock.test(readFileSync(info, "utf8"))) return Number(info.split("/")[2]);
    } catch {
      // The process has ended or belongs to another user.
    }
  }
  return null;
}
