/**
 * The file of a listening socket. Both runtimes unlink its path on close; these functions preserve
 * a socket that another process has created there since.
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

/** Runs `close`; removes our socket file, and preserves a replacement. */
export async function closeSocketFile(
  socketFile: SocketFile,
  close: () => Promise<void>,
): Promise<void> {
  const { path } = socketFile;
  const kept = isReplaced(socketFile) ? keepAside(path) : null;
  try {
    if (kept === null) rmSync(path, { force: true });
    await close();
  } finally {
    if (kept !== null) renameSync(kept, path);
  }
}

function isReplaced({ path, dev, ino }: SocketFile): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat !== undefined && (stat.dev !== dev || stat.ino !== ino);
}

/** Hard-links the file at `path` to another name. */
function keepAside(path: string): string {
  const kept = `${path}.kept`;
  rmSync(kept, { force: true });
  linkSync(path, kept);
  return kept;
}
