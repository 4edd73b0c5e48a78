/** Fills an empty log with segments from a store. */
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { operationalError } from "../../src/commands/exit.ts";
import { createFolder } from "../../src/commands/init.ts";
import { encodeManifest, type Manifest, readManifest } from "../../src/log/segment/manifest.ts";
import {
  MANIFEST_FILE,
  MANIFEST_TEMPORARY_FILE,
  PENDING_FOLDER,
  SEGMENTS_FOLDER,
  TAIL_FILE,
} from "../../src/log/storage/file_names.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { replaceFile, type Storage } from "../../src/log/storage/storage.ts";
import { createTail } from "../../src/log/wal/rotation.ts";
import { HistoryCheck } from "../../src/log/wal/history_check.ts";
import { verifySegment } from "../../src/log/verify/segment_verifier.ts";
import type { SegmentStore } from "./segment_store.ts";
import { copyVerified, openStore, orNull, readStoredManifest } from "./store.ts";

/**
 * Copies all segments from a store, verifies every event in them, then copies the manifest. After
 * an interruption, the next run resumes. A log that contains events is left unchanged. The store is
 * not trusted: a valid manifest names only files in `segments/`, and none may exceed its entry.
 * @throws {CommandError} if the store has no valid manifest, or a segment is missing or damaged.
 */
export async function fetchSegments(
  url: string,
  logDir: string,
  report: (line: string) => void,
): Promise<void> {
  const storage = fileStorage(logDir);
  if (await holdsEvents(storage, logDir)) return;
  const { store, manifest } = await openStored(url);
  const { segments } = manifest;
  await createFolder(join(logDir, SEGMENTS_FOLDER));
  for (const { path, bytes, sha256 } of segments) {
    // Comparing sizes suffices, since only verified copies are renamed and names contain the hash.
    if (await sizeOf(join(logDir, path)) === bytes) continue;
    const content = await store.get(path);
    if (content === null) {
      throw operationalError(`${url} has no ${path}, but its ${MANIFEST_FILE} lists it`);
    }
    await copyVerified(content, join(logDir, path), { bytes, sha256 });
  }
  const history = new HistoryCheck({ chain: true });
  for (const segment of segments) {
    await verifySegment(storage, segment, history).catch((error) => {
      throw operationalError(`${url} holds an invalid log: ${error.message}`);
    });
  }
  if (await sizeOf(join(logDir, TAIL_FILE)) === null) await createTail(storage);
  const bytes = encodeManifest(manifest);
  await replaceFile(storage, MANIFEST_FILE, MANIFEST_TEMPORARY_FILE, bytes);
  report(`copied ${segments.length} segments from ${url}`);
}

/** Opens a store that has segments. @throws {CommandError} if it has no valid manifest. */
export async function openStored(
  url: string,
): Promise<{ store: SegmentStore; manifest: Manifest }> {
  const store = openStore(url);
  const manifest = await readStoredManifest(store, url);
  if (manifest === null) throw operationalError(`${url} has no ${MANIFEST_FILE}`);
  return { store, manifest };
}

async function holdsEvents(storage: Storage, logDir: string): Promise<boolean> {
  const manifest = await readManifest(storage);
  const pending = await storage.list(PENDING_FOLDER) ?? [];
  const tailBytes = await sizeOf(join(logDir, TAIL_FILE)) ?? 0;
  return pending.length > 0 || tailBytes > 0 || (manifest?.segments.length ?? 0) > 0;
}

/** Returns the size of a file in bytes, or null if it does not exist. */
function sizeOf(path: string): Promise<number | null> {
  return orNull(async () => (await lstat(path)).size);
}
