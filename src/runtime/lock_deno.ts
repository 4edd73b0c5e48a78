/**
 * flock(2) by `Deno.FsFile`. Deno resolves symlinks before it opens a file when its permissions are
 * restricted, whatever the flags, so the path is looked at before the open and compared after it.
 */
import type { FileLock } from "./held_lock.ts";

/** How long a held lock is waited for where only a waiting flock(2) can be asked for. */
const LOCK_WAIT_MS = 500;

const EXCLUSIVE = true;

export async function lockFile(path: string): Promise<FileLock | null> {
  refuseOtherThanFile(path);
  const file = await Deno.open(path, { read: true, write: true, create: true, mode: 0o600 });
  let isLocked = false;
  try {
    refuseOtherFile(path, file);
    isLocked = "tryLockSync" in file ? file.tryLockSync(EXCLUSIVE) : await lockWithin(file);
  } finally {
    if (!isLocked) file.close();
  }
  return isLocked ? heldLock(file) : null;
}

function heldLock(file: Deno.FsFile): FileLock {
  let isHeld = true;
  return {
    release() {
      if (!isHeld) return;
      isHeld = false;
      file.close();
    },
  };
}

function refuseOtherThanFile(path: string): void {
  try {
    if (Deno.lstatSync(path).isFile) return;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw error;
  }
  throw new Error(`${path}: is not a regular file`);
}

function refuseOtherFile(path: string, file: Deno.FsFile): void {
  const [named, opened] = [Deno.lstatSync(path), file.statSync()];
  if (!named.isFile || named.dev !== opened.dev || named.ino !== opened.ino) {
    throw new Error(`${path}: was replaced while it was opened`);
  }
}

/**
 * For a runtime without `tryLockSync()` (before Deno 2.7): a lock that is not given within the
 * deadline is held. The request left behind ends with the file, which the caller closes.
 */
async function lockWithin(file: Deno.FsFile): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LOCK_WAIT_MS);
  });
  try {
    return await Promise.race([
      file.lock(EXCLUSIVE).then(() => true),
      deadline.then(() => false),
    ]);
  } finally {
    clearTimeout(timer);
  }
}
