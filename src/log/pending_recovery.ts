/**
 * Rotated tails as a start finds them: which ones segments cover, and what the others hold. They
 * are read and never repaired.
 */
import { assert } from "../assert.ts";
import { CommitFile, corruptAt, loadCommits } from "./wal/commit_file.ts";
import type { Commit } from "./wal/commit_frame.ts";
import { parsePendingName, PENDING_FOLDER } from "./storage/file_names.ts";
import { CorruptLogError } from "./storage/errors.ts";
import type { SegmentEntry } from "./segment/manifest.ts";
import type { Storage, StorageFile } from "./storage/storage.ts";

/** Names in the pending folder. */
export interface PendingNames {
  /** Sealed to the last event: left by a sealing that was cut off. */
  covered: string[];
  /**
   * The others, also where the first commits are sealed. In log order: a name begins with the first
   * id, so that is name order.
   */
  uncovered: string[];
}

/**
 * @param sealedThrough last event that is in a segment; null while there is none.
 * @throws {CorruptLogError} a name that is none of a rotated tail.
 */
export async function pendingNames(
  storage: Storage,
  sealedThrough: string | null,
): Promise<PendingNames> {
  const names: PendingNames = { covered: [], uncovered: [] };
  for (const name of await storage.list(PENDING_FOLDER) ?? []) {
    if (!name.endsWith(".ndjson")) continue;
    const range = parsePendingName(name);
    if (range === null) {
      throw new CorruptLogError(`${PENDING_FOLDER}/${name}: not the name of a rotated tail`);
    }
    const isCovered = sealedThrough !== null && range.lastEventId <= sealedThrough;
    names[isCovered ? "covered" : "uncovered"].push(name);
  }
  return names;
}

export interface PendingOptions {
  /** The last segment; undefined while there is none. */
  lastSealed: SegmentEntry | undefined;
  /** Told of every commit that no segment covers. Throws when it cannot follow those before. */
  onCommit: (commit: Commit) => void;
}

/**
 * Takes in a pending file that no segment covers to its end.
 * @throws {CorruptLogError} it is not what a rotation left.
 */
export async function recoverPending(
  file: StorageFile,
  name: string,
  { lastSealed, onCommit }: PendingOptions,
): Promise<CommitFile> {
  const path = `${PENDING_FOLDER}/${name}`;
  const target = new CommitFile(path, file);
  const fault = await loadCommits(target, await file.size(), {
    sealedThrough: lastSealed?.last_event_id ?? null,
    onCommit(commit) {
      if (target.endBytes > 0 && target.endBytes === target.startBytes) {
        assertJoined(target, lastSealed!);
      }
      onCommit(commit);
    },
  });
  if (fault !== null) throw corruptAt(target, fault);
  const range = parsePendingName(name);
  assert(range !== null, "only pending names are recovered");
  if (range.firstEventId !== target.firstEventId || range.lastEventId !== target.lastEventId) {
    throw new CorruptLogError(
      `${path}: holds events ${target.firstEventId} to ${target.lastEventId}, unlike its name`,
    );
  }
  return target;
}

/** The segments end with the commits of a pending file that they cover. */
function assertJoined({ path, lastEventId, head }: CommitFile, sealed: SegmentEntry): void {
  if (lastEventId === sealed.last_event_id && head === sealed.head) return;
  throw new CorruptLogError(
    `${path}: segments cover it through event ${lastEventId} with chain head ${head}, but they ` +
      `end with event ${sealed.last_event_id} and ${sealed.head}`,
  );
}
