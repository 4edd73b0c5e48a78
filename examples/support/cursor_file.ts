/** A position in the log, kept in a file: always the whole old one or the whole new one. */
import { open, readFile, rename } from "node:fs/promises";

/** The event id in the file; null, for the beginning of the log, when there is no file yet. */
export async function readCursor(path: string): Promise<string | null> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return null;
    throw error;
  }
}

/** Replaces the file: written aside, synced, renamed. */
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
