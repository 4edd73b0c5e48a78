/**
 * Renames the tail to a pending file and starts a new tail. The names are durable before the next
 * commit; otherwise, an acknowledged commit's file could have its old name after a crash.
 */
import { assert } from "../../assert.ts";
import { CommitFile } from "./commit_file.ts";
import {
  PENDING_FOLDER,
  pendingPath,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
} from "../storage/file_names.ts";
import { removeIfThere, type Storage, type StorageFile } from "../storage/storage.ts";

/** Creates an empty tail. Its name becomes durable with the next sync of the directory. */
export async function createTail(storage: Storage): Promise<void> {
  await (await createSynced(storage, TAIL_FILE)).close();
}

/**
 * Renames a tail that has events and is fully durable, puts an empty tail in its place, which it
 * returns, and switches readers of the old one to a handle that can't write. A failure leaves the
 * tail as it was, unless its `path` is the new one: then only recovery can continue the log.
 */
export async function rotateTail(
  storage: Storage,
  tail: CommitFile,
): Promise<CommitFile> {
  const { firstEventId, lastEventId } = tail;
  assert(firstEventId !== null && lastEventId !== null, "a rotated tail must have events");
  const path = pendingPath(firstEventId, lastEventId);
  const opened: StorageFile[] = [];
  try {
    // Everything that needs disk space or descriptors comes before the renames.
    await removeIfThere(storage, TAIL_TEMPORARY_FILE);
    const next = await createSynced(storage, TAIL_TEMPORARY_FILE);
    opened.push(next);
    // After a crash, this name tells a log between the renames from one that has lost its tail.
    await storage.syncFolder(".");
    // A pending file is never open for writing.
    const pending = await storage.open(TAIL_FILE, "read");
    opened.push(pending);
    await storage.rename(TAIL_FILE, path);
    tail.path = path;
    await storage.rename(TAIL_TEMPORARY_FILE, TAIL_FILE);
    await syncNames(storage);
    tail.file = pending;
    return new CommitFile(TAIL_FILE, next);
  } catch (error) {
    await Promise.allSettled(opened.map((file) => file.close()));
    throw error;
  }
}

/** Makes the names of all unsealed files durable. */
export async function syncNames(storage: Storage): Promise<void> {
  await storage.syncFolder(PENDING_FOLDER);
  await storage.syncFolder(".");
}

async function createSynced(storage: Storage, path: string): Promise<StorageFile> {
  const file = await storage.open(path, "create");
  try {
    await file.sync();
    return file;
  } catch (error) {
    await file.close().catch(() => {});
    throw error;
  }
}
