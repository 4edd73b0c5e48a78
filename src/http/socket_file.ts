/**
 * The file of a listening socket. Both runtimes unlink the path when the server closes. These
 * functions preserve a socket that another process has since created at the same path.
 */
import { chmodSync, linkSync, lstatSync, rmSync, statSync } from "node:fs";
import { rename } from "node:fs/promises";
import type { Server } from "node:net";
import { dirname } from "node:path";

const SETGID = 0o2000;
const OWNER_MODE = 0o600;
const GROUP_MODE = 0o660;

/**
 * Binds `path`, with mode 0600, or 0660 in a directory whose setgid bit gives the socket a group.
 * Both runtimes bind before `listen()` returns. Before that, the mode depends on the umask.
 */
export function bindSocket(server: Server, path: string): void {
  server.listen(path);
  // If it cannot be bound, the server will emit an error.
  if (!server.listening) return;
  const isShared = (statSync(dirname(path)).mode & SETGID) !== 0;
  chmodSync(path, isShared ? GROUP_MODE : OWNER_MODE);
}

/** Identifies the socket file that was just created at `path`. */
export function socketFileAt(path: string) {
  const { dev, ino } = lstatSync(path);
  return { path, dev, ino };
}

/** Runs `close` and removes our socket file, but preserves a replacement. */
export async function closeSocketFile(
  { path, dev, ino }: ReturnType<typeof socketFileAt>,
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
    const fail = ({ message }: Error) => report(`${path}: cannot be put back: ${message}`);
    if (isKept) await rename(kept, path).catch(fail);
  }
}
