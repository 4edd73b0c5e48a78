/**
 * Takes an exclusive flock(2) on a file, which excludes other processes in any runtime. The lock is
 * released when the process ends; the file is never deleted.
 */
import { lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { lockFile as lockFileOnDeno } from "./lock_deno.ts";
import { lockFile as lockFileOnNode } from "./lock_node.ts";

/**
 * Locks `path`, which is created with mode 0600 if missing.
 * @returns a function that releases the lock; null if another process or an earlier call in this
 *   process holds it.
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
 * shows the locks of each open file, to its user and to root. `/proc/locks` would not do, since it
 * names the `flock` program that took the lock for Node.
 */
export function lockHolder(path: string): number | null {
  // Deno shows /proc only to a program with all permissions, and would ask for them on a terminal.
  const isShown = !("Deno" in globalThis) ||
    Deno.permissions.querySync({ name: "ffi" }).state === "granted";
  if (!isShown) return null;
  const { dev, ino } = statSync(path);
  const holds = (pid: string) =>
    attempt(() => readdirSync(`/proc/${pid}/fd`))?.some((fd) =>
      attempt(() => {
        const opened = statSync(`/proc/${pid}/fd/${fd}`);
        if (opened.dev !== dev || opened.ino !== ino) return false;
        return readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8").includes("FLOCK");
      })
    );
  const pid = attempt(() => readdirSync("/proc"))?.find((name) =>
    /^\d+$/.test(name) && holds(name)
  );
  return pid === undefined ? null : Number(pid);
}

/** Returns null if `look` throws, as it does for another user's or an ended process. */
function attempt<T>(look: () => T): T | null {
  try {
    return look();
  } catch {
    return null;
  }
}
