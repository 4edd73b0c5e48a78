/**
 * Opens a log directory for its writer: checks it, finishes what a crash interrupted, and makes the
 * result durable (docs/format.md, "Recovery"). Recovery is idempotent.
 */
import { GENESIS_HEAD_HEX } from "../event/chain.ts";
import { freeOwnMemory } from "../free_memory.ts";
import { committedTwice } from "./wal/batch_index.ts";
import type { BatchEntry } from "./wal/commit_frame.ts";
import { CommitFile, corruptAt, loadCommits } from "./wal/commit_file.ts";
import type { OwnedStorage } from "./storage/owned_storage.ts";
import {
  LOCK_FILE,
  MANIFEST_FILE,
  parsePendingPath,
  parseSegmentPath,
  PENDING_FOLDER,
  pendingPath,
  SEGMENTS_FOLDER,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
  TEMPORARY_FILES,
} from "./storage/file_names.ts";
import { CorruptLogError } from "./storage/errors.ts";
import { EMPTY_MANIFEST, type Manifest, writeManifest } from "./segment/manifest.ts";
import { LogFiles } from "./sealing/log_files.ts";
import { createTail, syncNames } from "./wal/rotation.ts";
import type { RowGroupDecoder } from "./segment/row_group_decoder.ts";
import { SealedHistory } from "./segment/sealed_history.ts";
import { isNoRoom, readRange, removeIfThere, type Storage } from "./storage/storage.ts";
import { describeError } from "./storage/system_error.ts";
import {
  closeFiles,
  findUnlisted,
  type Inventory,
  isSealedAgain,
  openListed,
  takeInventory,
} from "./verify/inventory.ts";

export interface RecoveredLog {
  manifest: Manifest;
  files: LogFiles;
  /** Chain head after the last event, 64 lowercase hex digits. */
  head: string;
}

/** Reports repairs to the operator. */
export type Report = (line: string) => void;

/**
 * @param decoder see `LogOptions`.
 * @throws {CorruptLogError} if committed bytes are damaged or missing; nothing was changed.
 * @throws {UnsupportedFormatError} if a newer program wrote the log.
 */
export async function recover(
  storage: OwnedStorage,
  report: Report,
  decoder?: RowGroupDecoder,
): Promise<RecoveredLog> {
  // Before they are opened, so that whoever replaces one from then on is noticed.
  await storage.hold(LOCK_FILE, MANIFEST_FILE, TAIL_FILE);
  if (await storage.list(".") === null) throw new Error("the log directory does not exist");
  let inventory = await takeInventory(storage, "write");
  if (!inventory.isStarted) {
    await createLog(storage, inventory);
    inventory = await takeInventory(storage, "write");
  }
  const sealed = new SealedHistory(storage, { report, decoder });
  try {
    return await recoverFiles(storage, inventory, report, sealed);
  } catch (error) {
    await Promise.allSettled([closeFiles(inventory), sealed.close()]);
    throw error;
  }
}

async function recoverFiles(
  storage: OwnedStorage,
  inventory: Inventory,
  report: Report,
  sealed: SealedHistory,
): Promise<RecoveredLog> {
  const { manifest } = inventory;
  await sealed.open(manifest.segments);
  if (!inventory.lacksTail) {
    inventory.tail ??= await openListed(storage, TAIL_TEMPORARY_FILE, "write");
  }
  if (inventory.tail === null) throw new CorruptLogError(`${TAIL_FILE} is missing`);
  const unsealed: CommitFile[] = [];
  let { lastEventId } = sealed;
  let head = manifest.segments.at(-1)?.head ?? GENESIS_HEAD_HEX;
  for (const listed of [...inventory.pending, inventory.tail]) {
    const isTail = listed === inventory.tail;
    const file = new CommitFile(isTail ? TAIL_FILE : listed.path, listed.file);
    const { fault, corruption } = await loadCommits(file, listed.sizeBytes, head, (entry) => {
      assertFollows(entry, lastEventId, file.path);
      const { source, batch_id } = entry;
      const isKnown = unsealed.some(({ batches }) => batches.findBatch(source, batch_id) !== null);
      if (isKnown) throw committedTwice(entry);
      lastEventId = entry.last_event_id;
    });
    if (!isTail) assertWhole(file, fault);
    else if (corruption !== null) throw corruptAt(file, `${fault}; ${corruption}`);
    unsealed.push(file);
    head = file.head ?? head;
  }
  const { firstEventId } = unsealed[0]!;
  const unlisted = findUnlisted(inventory, { firstEventId, lastEventId });
  if (unlisted !== null) throw unlisted;
  // Up to here, nothing was changed.
  const tail = unsealed.at(-1)!;
  const remnantBytes = inventory.tail.sizeBytes - tail.endBytes;
  if (remnantBytes > 0) {
    report(
      `${TAIL_FILE}: removed ${remnantBytes} bytes of an unfinished commit after ` +
        (tail.lastEventId === null ? "the start of the file" : `event ${tail.lastEventId}`),
    );
  }
  // A copy of a log may lack empty directories.
  await makeFolders(storage);
  await makeDurable(tail);
  if (inventory.tail.path !== TAIL_FILE) await storage.rename(TAIL_TEMPORARY_FILE, TAIL_FILE);
  await syncNames(storage);
  await removeLeftovers(storage, inventory, report);
  const paths = [...inventory.pending, ...manifest.segments.slice(-1)].map(({ path }) => path);
  await storage.hold(PENDING_FOLDER, SEGMENTS_FOLDER, ...paths);
  return { manifest, files: new LogFiles(sealed, unsealed), head };
}

/** @throws {CorruptLogError} if a pending file is damaged or does not match its name. */
function assertWhole(file: CommitFile, fault: string | null): void {
  if (fault !== null) throw corruptAt(file, fault);
  const { path, firstEventId, lastEventId } = file;
  const isNamed = firstEventId !== null && lastEventId !== null &&
    path === pendingPath(firstEventId, lastEventId);
  if (!isNamed) {
    throw new CorruptLogError(
      `${path}: name does not match its events, ${firstEventId} to ${lastEventId}`,
    );
  }
}

async function removeLeftovers(
  storage: Storage,
  inventory: Inventory,
  report: Report,
): Promise<void> {
  const { manifest, orphans } = inventory;
  for (const path of TEMPORARY_FILES) await removeIfThere(storage, path);
  const covered = orphans.filter((path) => parsePendingPath(path) !== null);
  // After a failed fsync the page cache may hold a manifest that is not on disk. Rewrite it before
  // removing the files that it covers. Without room for that, they wait for another start.
  try {
    if (covered.length > 0) await writeManifest(storage, manifest);
    for (const path of covered) await storage.remove(path);
  } catch (error) {
    if (!isNoRoom(error)) throw error;
    report(`${covered}: sealed, but not removed until restart: ${describeError(error)}`);
  }
  for (const path of orphans.filter((path) => parseSegmentPath(path) !== null)) {
    if (isSealedAgain(path, inventory)) await storage.remove(path);
    else report(`${path}: not in the manifest, left in place`);
  }
  await storage.syncFolder(PENDING_FOLDER);
  await storage.syncFolder(SEGMENTS_FOLDER);
}

/**
 * Creates an empty log. Its manifest is written last, so that an interrupted first startup leaves
 * only an empty tail and empty directories.
 */
async function createLog(storage: OwnedStorage, { tail }: Inventory): Promise<void> {
  await tail?.file.close();
  await makeFolders(storage);
  if (tail === null) await createTail(storage);
  await storage.hold(TAIL_FILE);
  await storage.syncFolder(".");
  for (const path of TEMPORARY_FILES) await removeIfThere(storage, path);
  await writeManifest(storage, EMPTY_MANIFEST);
}

async function makeFolders(storage: Storage): Promise<void> {
  for (const folder of [PENDING_FOLDER, SEGMENTS_FOLDER]) {
    if (await storage.list(folder) === null) await storage.makeFolder(folder);
  }
}

/**
 * Makes the previous process's writes durable before anything reads them. After a failed fsync,
 * pages of the last commit may be clean in the page cache but not on disk, so that commit is
 * rewritten. Truncation is also repeated, since the disk may still hold the removed bytes.
 */
async function makeDurable({ file, lastCommitOffset, endBytes }: CommitFile) {
  if (endBytes > 0) {
    const lastCommit = await readRange(file, lastCommitOffset, endBytes);
    await file.write(lastCommit, lastCommitOffset);
    freeOwnMemory(lastCommit);
  }
  await file.truncate(endBytes);
  await file.sync();
}

/** Checks that ids increase across all files in the log. */
function assertFollows(entry: BatchEntry, lastEventId: string | null, path: string): void {
  const { first_event_id: first, last_event_id: last } = entry;
  const ordered = first <= last && (entry.events === 1) === (first === last) &&
    (lastEventId === null || lastEventId < first);
  if (!ordered) {
    throw new CorruptLogError(
      `${path}: events ${first} to ${last} do not follow event ${lastEventId}`,
    );
  }
}
