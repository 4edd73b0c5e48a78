/**
 * The file for a listening socket. Both runtimes unlink the path when the server closes. These
 * functions preserve a socket that another process has since created at the same path.
 */
import { linkSync, lstatSync, renameSync, rmSync } from "node:fs";

/** Identity of a socket file. */
export interface SocketFile {
  path: string;
  dev: number;
  ino: number;
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
