/**
 * flock(2) for Node, which has no binding for it. On Linux, the `flock` program locks the file that
 * it inherits as descriptor 3; the lock belongs to the open file description, so it outlives the
 * program. On macOS and the BSDs, open(2) takes the lock.
 */
import { spawnSync } from "node:child_process";
import { closeSync, constants, fstatSync, openSync } from "node:fs";
import process from "node:process";

/** O_NONBLOCK keeps open(2) from blocking on a pipe. */
const OPEN_FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW |
  constants.O_NONBLOCK;
/** Flag on macOS and the BSDs, missing from `constants`. EAGAIN means that the lock is held. */
const O_EXLOCK = 0x20;
/** Exit status of `flock` (util-linux and BusyBox) if the lock is held. */
const FLOCK_HELD = 1;

/** Returns a function that unlocks the file by closing it; null if the lock is held. */
export function lockFile(path: string): (() => void) | null {
  const isLockedByOpen = process.platform !== "linux";
  let fd: number;
  try {
    fd = openSync(path, isLockedByOpen ? OPEN_FLAGS | O_EXLOCK : OPEN_FLAGS, 0o600);
  } catch (error) {
    if (isLockedByOpen && (error as { code?: string }).code === "EAGAIN") return null;
    throw error;
  }
  let isLocked = false;
  try {
    if (!fstatSync(fd).isFile()) throw new Error(`${path}: not a regular file`);
    isLocked = isLockedByOpen || runFlock(path, fd);
  } finally {
    if (!isLocked) closeSync(fd);
  }
  return isLocked ? () => closeSync(fd) : null;
}

/** Uses short options, since BusyBox has no long ones. */
function runFlock(path: string, fd: number): boolean {
  const { status, signal, error, stderr } = spawnSync("flock", ["-x", "-n", "3"], {
    stdio: ["ignore", "ignore", "pipe", fd],
    encoding: "utf8",
  });
  if (status === 0) return true;
  if (status === FLOCK_HELD) return false;
  let reason = error?.message ?? `flock: ${stderr.trim() || (signal ?? `exit status ${status}`)}`;
  if (error !== undefined && "code" in error && error.code === "ENOENT") {
    reason = "Node requires the flock program; install the util-linux package";
  }
  throw new Error(`${path}: cannot be locked: ${reason}`);
}
