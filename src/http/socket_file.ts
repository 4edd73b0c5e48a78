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
): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  const isReplaced = found !== undefined && (found.dev !== dev || found.ino !== ino);
  const kept = `${path}.kept`;
  if (isReplaced) {
    rmSync(kept, { force: true });
    linkSync(path, kept);
  } else {
    rmSync(path, { force: true });
  }
  try {
    await close();
  } finally {
    if (isReplaced) renameSync(kept, path);
  }
}
