/**
 * Renames the tail to a pending file and starts a new tail. A failure before the two renames leaves
 * the tail unchanged; if the second rename fails, the first is undone.
 *
 * The names are durable only after both directories are synced. Until then, no commit may be
 * acknowledged, since the commit's file could have its old name after a crash.
 */
import { assert } from "../../assert.ts";
import type { CommitFile } from "./commit_file.ts";
import {
  PENDING_FOLDER,
  pendingPath,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
} from "../storage/file_names.ts";
import { removeIfThere, type Storage, type StorageFile } from "../storage/storage.ts";

/** Creates an empty tail. Its name becomes durable with the next sync of the directory. */
export async function createTail(storage: Storage): Promise<void> {
  const file = await createSynced(storage, TAIL_FILE);
  await file.close();
}

export interface Rotated {
  /** New name of the old tail. */
  path: string;
  /** The old tail, open for reading. */
  pending: StorageFile;
  /** The new tail, empty, open for writing. */
  tail: StorageFile;
}

export class RotationError extends Error {
  override name = "RotationError";
  /**
   * `kept`: the tail is unchanged. `undone`: it was renamed back; the directories need a sync.
   * `torn`: it kept its new name, and there is no tail.
   */
  readonly outcome: "kept" | "undone" | "torn";

  constructor(outcome: RotationError["outcome"], cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.outcome = outcome;
  }
}

/**
 * Renames a tail that has events and is fully durable, and puts an empty tail in its place. Both
 * names are durable after `syncNames()`.
 * @throws {RotationError}
 */
export async function rotateTail(storage: Storage, tail: CommitFile): Promise<Rotated> {
  const { firstEventId, lastEventId } = tail;
  assert(firstEventId !== null && lastEventId !== null, "a rotated tail must have events");
  const path = pendingPath(firstEventId, lastEventId);
  const opened: StorageFile[] = [];
  try {
    // Everything that needs disk space or descriptors comes before the renames.
    await removeIfThere(storage, TAIL_TEMPORARY_FILE);
    const next = await createSynced(storage, TAIL_TEMPORARY_FILE);
    opened.push(next);
    // A pending file is never open for writing.
    const pending = await storage.open(TAIL_FILE, "read");
    opened.push(pending);
    await storage.rename(TAIL_FILE, path);
    await takePlace(storage, path);
    return { path, pending, tail: next };
  } catch (error) {
    const failure = error instanceof RotationError ? error : new RotationError("kept", error);
    // The outcome of the renames takes precedence; a failed close only extends the message.
    for (const closed of await Promise.allSettled(opened.map((file) => file.close()))) {
      if (closed.status === "rejected") failure.message += `; ${closed.reason}`;
    }
    throw failure;
  }
}

/** Makes names durable after a completed or undone rotation. */
export async function syncNames(storage: Storage): Promise<void> {
  await storage.syncFolder(PENDING_FOLDER);
  await storage.syncFolder(".");
}

/** Renames the new tail; if that fails, renames the old one back. @throws {RotationError} */
async function takePlace(storage: Storage, pendingPath: string): Promise<void> {
  try {
    await storage.rename(TAIL_TEMPORARY_FILE, TAIL_FILE);
  } catch (error) {
    try {
      await storage.rename(pendingPath, TAIL_FILE);
    } catch {
      throw new RotationError("torn", error);
    }
    throw new RotationError("undone", error);
  }
}

async function createSynced(storage: Storage, path: string): Promise<StorageFile> {
  const file = await storage.open(path, "create");
  try {
    await file.sync();
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}
