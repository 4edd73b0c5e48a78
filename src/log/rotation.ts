/** Moves the tail out of the way of new commits, so that what is in it can be sealed. */
import { assert } from "../assert.ts";
import { CommitFile } from "./commit_file.ts";
import { PENDING_FOLDER, pendingPath, TAIL_FILE } from "./layout.ts";
import type { Storage } from "./storage.ts";

/** Makes an empty tail. Its name is durable with the next sync of the folder. */
export async function createTail(storage: Storage): Promise<void> {
  const file = await storage.open(TAIL_FILE, "create");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

export interface Rotated {
  pending: CommitFile;
  tail: CommitFile;
}

/**
 * Rotates a tail that holds events and is durable to its end; its file stays open. A crash leaves
 * the old tail, or the pending file without a new tail, which the next start makes.
 */
export async function rotateTail(storage: Storage, tail: CommitFile): Promise<Rotated> {
  const { firstEventId, lastEventId } = tail;
  assert(firstEventId !== null && lastEventId !== null, "a tail that is rotated holds events");
  const path = pendingPath(firstEventId, lastEventId);
  await storage.rename(TAIL_FILE, path);
  await createTail(storage);
  await storage.syncFolder(PENDING_FOLDER);
  await storage.syncFolder(".");
  // A pending file is never open for writing.
  const pending = tail.reopenedAs(path, await storage.open(path, "read"));
  return { pending, tail: new CommitFile(TAIL_FILE, await storage.open(TAIL_FILE, "write")) };
}
