/** Stores a position in the log in a file, which is replaced atomically. */
import { open, readFile, rename } from "node:fs/promises";

const EVENT_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Reads the event id; null, for the beginning of the log, if the file does not exist.
 * @throws {Error} if the file does not contain an event id.
 */
export async function readCursor(path: string): Promise<string | null> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  const position = text?.trim() ?? null;
  if (position === null || EVENT_ID.test(position)) return position;
  throw new Error(`${path} does not contain an event id; delete it to start from the beginning`);
}

/** Replaces the file: writes a temporary file, syncs it and renames it. */
export async function writeCursor(
  path: string,
  eventId: string,
): Promise<void> {
  const asidePath = `${path}.new`;
  const file = await open(asidePath, "w");
  try {
    await file.writeFile(`${eventId}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(asidePath, path);
}
