/**
 * The file of a listening socket. Both runtimes unlink the path when the server closes. These
 * functions preserve a socket that another process has since created at the same path.
 */
import { linkSync, lstatSync, renameSync, rmSync, statSync } from "node:fs";
import type { Server } from "node:net";
import { dirname } from "node:path";
import process from "node:process";

const SETGID = 0o2000;
const UMASK_OF_OWNER = 0o177;
const UMASK_OF_GROUP = 0o117;

/** Identity of a socket file. */
export interface SocketFile {
  path: string;
  dev: number;
  ino: number;
}

/**
 * Binds `path`. The socket has mode 0600 from its first moment, or 0660 in a directory whose setgid
 * bit gives it a group. Both runtimes bind before `listen()` returns.
 */
export function bindSocket(server: Server, path: string): void {
  const folder = statSync(dirname(path), { throwIfNoEntry: false });
  const isShared = folder !== undefined && (folder.mode & SETGID) !== 0;
  const before = process.umask(isShared ? UMASK_OF_GROUP : UMASK_OF_OWNER);
  try {
    server.listen(path);
  } finally {
    process.umask(before);
  }
}

/** Identifies the socket file that was just created at `path`. */
export function socketFileAt(path: string): SocketFile {
  const { dev, ino } = lstatSync(path);
  return { path, dev, ino };
}

/** Runs `close` and removes our socket file, but preserves a replacement. */
export async function closeSocketFile(
  { path, dev, ino }: SocketFile,
  close: () => Promise<void>,
  report: (line: string) => void,
): Promise<void> {
  const kept = `${path}.kept`;
  let isKept = false;
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined || found.dev === dev && found.ino === ino) {
      rmSync(path, { force: true });
    } else {
      rmSync(kept, { force: true });
      linkSync(path, kept);
      isKept = true;
    }
  } catch (error) {
    report(`${path}: the socket file cannot be removed: ${(error as Error).message}`);
  }
  try {
    await close();
  } finally {
    if (isKept) renameSync(kept, path);
  }
}
