/** Stores a position in the log in a file, which is replaced atomically. */
import { open, readFile, rename } from "node:fs/promises";

/** Reads the event id; null, for the beginning of the log, if the file does not exist. */
export async function readCursor(path: string): Promise<string | null> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return null;
    throw error;
  }
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
