/**
 * flock(2) for Node, which has no call for it. On Linux the `flock` program locks our open file,
 * which it gets as its descriptor 3: the lock belongs to the open file, so it stays with us when
 * that program has ended. On macOS and the BSDs open(2) takes the same lock itself.
 */
import { spawnSync } from "node:child_process";
import { closeSync, constants, fstatSync, lstatSync, openSync } from "node:fs";
import process from "node:process";
import type { FileLock } from "./held_lock.ts";

/** O_NONBLOCK keeps the open of a pipe from waiting for its other end. */
const OPEN_FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW |
  constants.O_NONBLOCK;
/** Of macOS and the BSDs; with O_NONBLOCK a held lock is EAGAIN. Not among `constants`. */
const O_EXLOCK = 0x20;
/** What `flock` of util-linux and of BusyBox exits with when the lock is held. */
const FLOCK_HELD = 1;

export function lockFile(path: string): FileLock | null {
  return process.platform === "linux" ? lockByProgram(path) : lockByOpen(path);
}

function lockByProgram(path: string): FileLock | null {
  const fd = openFile(path, OPEN_FLAGS);
  let isLocked = false;
  try {
    isLocked = runFlock(path, fd);
  } finally {
    if (!isLocked) closeSync(fd);
  }
  return isLocked ? heldLock(fd) : null;
}

/** Short options, because BusyBox knows no long ones. */
function runFlock(path: string, fd: number): boolean {
  const { status, signal, error, stderr } = spawnSync("flock", ["-x", "-n", "3"], {
    stdio: ["ignore", "ignore", "pipe", fd],
    encoding: "utf8",
  });
  if (error !== undefined) {
    const isMissing = "code" in error && error.code === "ENOENT";
    const reason = isMissing
      ? "Node needs the program flock for it; install the package util-linux"
      : error.message;
    throw new Error(`${path}: cannot be locked: ${reason}`);
  }
  if (status === 0) return true;
  if (status === FLOCK_HELD) return false;
  const reason = stderr.trim() || (signal ?? `exit status ${status}`);
  throw new Error(`${path}: cannot be locked: flock: ${reason}`);
}

function lockByOpen(path: string): FileLock | null {
  try {
    return heldLock(openFile(path, OPEN_FLAGS | O_EXLOCK));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EAGAIN") return null;
    throw error;
  }
}

function openFile(path: string, flags: number): number {
  refuseOtherThanFile(path);
  const fd = openSync(path, flags, 0o600);
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  throw new Error(`${path}: is not a regular file`);
}

/** In words: open(2) speaks of too many links where there is one that it does not follow. */
function refuseOtherThanFile(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat !== undefined && !stat.isFile()) throw new Error(`${path}: is not a regular file`);
}

function heldLock(fd: number): FileLock {
  let isHeld = true;
  return {
    release() {
      if (!isHeld) return;
      isHeld = false;
      closeSync(fd);
    },
  };
}
