/** Starts a log with the segments of a store. */
import { lstat, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { operationalError } from "../../src/commands/exit.ts";
import type { Manifest } from "../../src/log/segment/manifest.ts";
import {
  MANIFEST_FILE,
  MANIFEST_TEMPORARY_FILE,
  parseSegmentName,
  SEGMENTS_FOLDER,
  TAIL_FILE,
} from "../../src/log/storage/file_names.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { isNotFound, replaceFile } from "../../src/log/storage/storage.ts";
import { createTail } from "../../src/log/wal/rotation.ts";
import { copyVerified, openStore, readStored } from "./store.ts";

/**
 * Copies all segments of a store into a log folder without a log, its manifest last; an interrupted
 * run is continued by the next one. A folder with a log is left alone.
 * @throws {CommandError} the store has no manifest, or a segment is damaged.
 */
export async function fetchSegments(
  url: string,
  logDir: string,
  report: (line: string) => void,
): Promise<void> {
  if (await sizeOf(join(logDir, MANIFEST_FILE)) !== null) return;
  const store = openStore(url);
  const bytes = await readStored(store, MANIFEST_FILE);
  if (bytes === null) throw operationalError(`${url} has no ${MANIFEST_FILE}`);
  const { segments } = JSON.parse(bytes.toString()) as Manifest;
  await mkdir(join(logDir, SEGMENTS_FOLDER), { recursive: true, mode: 0o700 });
  for (const { path, bytes, sha256 } of segments) {
    if (parseSegmentName(path.slice(SEGMENTS_FOLDER.length + 1)) === null) {
      throw operationalError(`${url}: ${path} in ${MANIFEST_FILE} is not the name of a segment`);
    }
    // A verified copy is renamed into place, and its name has its hash.
    if (await sizeOf(join(logDir, path)) === bytes) continue;
    const content = await store.get(path);
    if (content === null) throw operationalError(`${url} has no ${path}`);
    await copyVerified(content, join(logDir, path), { bytes, sha256 });
  }
  const storage = fileStorage(logDir);
  if (await sizeOf(join(logDir, TAIL_FILE)) === null) await createTail(storage);
  await replaceFile(storage, MANIFEST_FILE, MANIFEST_TEMPORARY_FILE, bytes);
  report(`copied ${segments.length} segments from ${url}`);
}

/** Size of a file in bytes; null if there is none. */
async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await lstat(path)).size;
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}
