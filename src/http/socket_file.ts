/**
 * The file of a listening socket. Both runtimes remove whatever lies at its path when they close; a
 * socket that someone else has put there since is kept.
 */
import { linkSync, lstatSync, renameSync, rmSync } from "node:fs";

/** Identity of a socket file. */
export interface SocketFile {
  path: string;
  dev: number;
  ino: number;
}

/** Remembers the socket file that was just made at `path`. */
export function socketFileAt(path: string): SocketFile {
  const { dev, ino } = lstatSync(path);
  return { path, dev, ino };
}

/** Runs `close`, after which our socket file is gone and another's is still there. */
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

/** A second name for the file at `path`. */
function keepAside(path: string): string {
  const kept = `${path}.kept`;
  rmSync(kept, { force: true });
  linkSync(path, kept);
  return kept;
}
