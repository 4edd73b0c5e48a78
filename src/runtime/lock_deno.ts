/**
 * flock(2) through `Deno.FsFile`. With restricted permissions, Deno follows symlinks regardless of
 * the flags, so the path is compared with the opened file.
 */
import { setTimeout as delay } from "node:timers/promises";

/** Timeout for a blocking flock(2), used where the non-blocking call is unavailable. */
const LOCK_WAIT_MS = 500;

const EXCLUSIVE = true;

/** Returns a function that unlocks the file by closing it; null if the lock is held. */
export async function lockFile(path: string): Promise<(() => void) | null> {
  const file = await Deno.open(path, { read: true, write: true, create: true, mode: 0o600 });
  let isLocked = false;
  try {
    refuseOtherFile(path, file);
    isLocked = "tryLockSync" in file ? file.tryLockSync(EXCLUSIVE) : await lockWithin(file);
  } finally {
    if (!isLocked) file.close();
  }
  return isLocked ? () => file.close() : null;
}

function refuseOtherFile(path: string, file: Deno.FsFile): void {
  const [named, opened] = [Deno.lstatSync(path), file.statSync()];
  if (!named.isFile || named.dev !== opened.dev || named.ino !== opened.ino) {
    throw new Error(`${path}: replaced while it was being opened`);
  }
}

/**
 * Locks without `tryLockSync()`, which Deno lacks before 2.7 (an executable may embed such a
 * version). A timeout means that the lock is held. Closing the file ends the pending call.
 */
async function lockWithin(file: Deno.FsFile): Promise<boolean> {
  const deadline = delay(LOCK_WAIT_MS, null, { ref: false }).then(() => false);
  return await Promise.race([file.lock(EXCLUSIVE).then(() => true), deadline]);
}
