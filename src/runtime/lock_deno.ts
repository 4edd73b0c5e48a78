/**
 * flock(2) through `Deno.FsFile`. With restricted permissions Deno follows symlinks whatever the
 * flags, so the path is compared after the open.
 */

const EXCLUSIVE = true;

/** Returns a function that closes and so unlocks the file; null if the lock is held. */
export function lockFile(path: string): (() => void) | null {
  const file = Deno.openSync(path, { read: true, write: true, create: true, mode: 0o600 });
  let isLocked = false;
  try {
    refuseOtherFile(path, file);
    isLocked = file.tryLockSync(EXCLUSIVE);
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
