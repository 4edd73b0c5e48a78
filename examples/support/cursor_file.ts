/** A position in the log, kept in a file that is replaced atomically. */
import { open, readFile, rename } from "node:fs/promises";

/** The event id in the file; null for the beginning of the log if there is no file yet. */
export async function readCursor(path: string): Promise<string | null> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return null;
    throw error;
  }
}

/** Replaces the file: writes a temporary file, syncs it, renames it. */
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
