/**
 * Opens a log directory for its writer: checks it, finishes what a crash interrupted, and makes the
 * result durable (docs/format.md, "Recovery"). Recovery is idempotent.
 */
import { assert } from "../assert.ts";
import { READ_CHUNK_BYTES } from "../limits.ts";
import { GENESIS_HEAD_HEX } from "../event/chain.ts";
import { committedTwice } from "./wal/batch_index.ts";
import type { BatchEntry } from "./wal/commit_frame.ts";
import { CommitFile, corruptAt, loadCommits, usedBytes } from "./wal/commit_file.ts";
import {
  isWithinPending,
  MANIFEST_TEMPORARY_FILE,
  parsePendingName,
  PENDING_FOLDER,
  pendingPath,
  SEGMENT_TEMPORARY_FILE,
  SEGMENTS_FOLDER,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
} from "./storage/file_names.ts";
import { CorruptLogError } from "./storage/errors.ts";
import { EMPTY_MANIFEST, type Manifest, readManifest, writeManifest } from "./segment/manifest.ts";
import { createTail, syncNames } from "./wal/rotation.ts";
import type { RowGroupDecoder } from "./segment/decode_thread.ts";
import { SealedHistory } from "./segment/sealed_history.ts";
import { remnantFault } from "./wal/remnant.ts";
import { isNotFound, removeIfThere, type Storage, type StorageFile } from "./storage/storage.ts";

export interface RecoveredLog {
  manifest: Manifest;
  sealed: SealedHistory;
  /** Rotated tails that are not yet sealed, oldest first. */
  pending: CommitFile[];
  tail: CommitFile;
  /** Last event in the log; null for an empty one. */
  lastEventId: string | null;
  /** Chain head after the last event, 64 lowercase hex digits. */
  head: string;
}

/** Reports repairs to the operator. */
export type Report = (line: string) => void;

export interface RecoveryOptions {
  storage: Storage;
  report: Report;
  /** Decodes row groups; by default, this thread does. */
  decoder?: RowGroupDecoder | undefined;
}

/**
 * @throws {CorruptLogError} if committed bytes are damaged or missing; nothing was changed.
 * @throws {UnsupportedFormatError} if a newer program wrote the log.
 */
export async function recover(
  { storage, report, decoder }: RecoveryOptions,
): Promise<RecoveredLog> {
  const manifest = await prepareFolder(storage);
  const opened: Closable[] = [];
  try {
    const sealed = new SealedHistory(storage, { report, decoder });
    opened.push(sealed);
    return await recoverFiles(storage, manifest, report, sealed, opened);
  } catch (error) {
    await Promise.allSettled(opened.map((file) => file.close()));
    throw error;
  }
}

interface Closable {
  close(): Promise<void>;
}

/** @param opened receives every file that stays open. */
async function recoverFiles(
  storage: Storage,
  manifest: Manifest,
  report: Report,
  sealed: SealedHistory,
  opened: Closable[],
): Promise<RecoveredLog> {
  await sealed.open(manifest.segments);
  let { lastEventId } = sealed;
  const pending: CommitFile[] = [];
  const onBatch = (path: string) => (entry: BatchEntry) => {
    assertFollows(entry, lastEventId, path);
    const { source, batch_id } = entry;
    const isKnown = pending.some(({ batches }) => batches.findBatch(source, batch_id) !== null);
    if (isKnown) throw committedTwice(entry);
    lastEventId = entry.last_event_id;
  };
  const names = await pendingNames(storage, sealed.lastEventId);
  for (const name of names.uncovered) {
    const path = `${PENDING_FOLDER}/${name}`;
    const file = await storage.open(path, "read");
    opened.push(file);
    pending.push(await recoverPending(file, path, onBatch(path)));
  }
  const file = await openTail(storage, pending.length > 0);
  opened.push(file);
  const tail = await recoverTail(file, onBatch(TAIL_FILE), report);
  await makeDurable(tail);
  await syncNames(storage);
  await removeLeftovers(storage, manifest, names, report);
  const head = [tail, ...pending.toReversed()].find((file) => file.head !== null)?.head;
  return {
    manifest,
    sealed,
    pending,
    tail,
    lastEventId,
    head: head ?? manifest.segments.at(-1)?.head ?? GENESIS_HEAD_HEX,
  };
}

/** Names in the pending directory. */
interface PendingNames {
  /** Files already sealed whose removal was interrupted by a crash. */
  covered: string[];
  /** In log order. Names sort in the same order, since each begins with the file's first id. */
  uncovered: string[];
}

/** @throws {CorruptLogError} if a name is not a valid pending file name. */
async function pendingNames(
  storage: Storage,
  sealedThrough: string | null,
): Promise<PendingNames> {
  const names: PendingNames = { covered: [], uncovered: [] };
  for (const name of await storage.list(PENDING_FOLDER) ?? []) {
    if (!name.endsWith(".ndjson")) continue;
    const range = parsePendingName(name);
    if (range === null) {
      throw new CorruptLogError(`${PENDING_FOLDER}/${name}: not a valid name for a pending file`);
    }
    const isCovered = sealedThrough !== null && range.lastEventId <= sealedThrough;
    names[isCovered ? "covered" : "uncovered"].push(name);
  }
  return names;
}

/** Reads a pending file. @throws {CorruptLogError} if it is damaged or does not match its name. */
async function recoverPending(
  file: StorageFile,
  path: string,
  onBatch: (entry: BatchEntry) => void,
): Promise<CommitFile> {
  const target = new CommitFile(path, file);
  const fault = await loadCommits(target, await file.size(), onBatch);
  if (fault !== null) throw corruptAt(target, fault);
  const { firstEventId, lastEventId } = target;
  const isNamed = firstEventId !== null && lastEventId !== null &&
    path === pendingPath(firstEventId, lastEventId);
  if (!isNamed) {
    throw new CorruptLogError(
      `${path}: name does not match its events, ${firstEventId} to ${lastEventId}`,
    );
  }
  return target;
}

/**
 * Removes the leftovers from an interrupted seal. A segment that the manifest does not list is
 * removed only if a pending file holds its events. Otherwise the segment may be the only copy, for
 * example after an older manifest was restored.
 */
async function removeLeftovers(
  storage: Storage,
  manifest: Manifest,
  names: PendingNames,
  report: Report,
): Promise<void> {
  await removeTemporaryFiles(storage);
  // After a failed fsync the page cache may hold a manifest that is not on disk. Rewrite it before
  // removing the files that it covers.
  if (names.covered.length > 0) await writeManifest(storage, manifest);
  for (const name of names.covered) await storage.remove(`${PENDING_FOLDER}/${name}`);
  const listed = new Set(manifest.segments.map(({ path }) => path));
  for (const name of await storage.list(SEGMENTS_FOLDER) ?? []) {
    const path = `${SEGMENTS_FOLDER}/${name}`;
    if (listed.has(path)) continue;
    if (path === SEGMENT_TEMPORARY_FILE || isWithinPending(name, names.uncovered)) {
      await storage.remove(path);
    } else {
      report(`${path}: not in the manifest, left in place`);
    }
  }
  await storage.syncFolder(PENDING_FOLDER);
  await storage.syncFolder(SEGMENTS_FOLDER);
}

/**
 * Reads the manifest, or creates an empty log. The manifest of a new log is written last, so an
 * interrupted first startup leaves only an empty tail and empty directories. Any other directory
 * without a manifest is corrupt.
 */
async function prepareFolder(storage: Storage): Promise<Manifest> {
  const names = await storage.list(".");
  if (names === null) throw new Error("the log directory does not exist");
  const manifest = await readManifest(storage);
  if (manifest === null) await assertNeverWritten(storage, names);
  // A copy of a log may lack empty directories.
  for (const folder of [PENDING_FOLDER, SEGMENTS_FOLDER]) {
    if (!names.includes(folder)) await storage.makeFolder(folder);
  }
  if (manifest !== null) return manifest;
  if (!names.includes(TAIL_FILE)) await createTail(storage);
  await storage.syncFolder(".");
  await removeTemporaryFiles(storage);
  await writeManifest(storage, EMPTY_MANIFEST);
  return EMPTY_MANIFEST;
}

/** Removes a temporary manifest or tail that was never renamed. */
async function removeTemporaryFiles(storage: Storage): Promise<void> {
  for (const path of [MANIFEST_TEMPORARY_FILE, TAIL_TEMPORARY_FILE]) {
    await removeIfThere(storage, path);
  }
}

async function assertNeverWritten(storage: Storage, names: string[]): Promise<void> {
  const holdsFiles = (await storage.list(PENDING_FOLDER) ?? []).length > 0 ||
    (await storage.list(SEGMENTS_FOLDER) ?? []).length > 0;
  let tailBytes = 0;
  if (names.includes(TAIL_FILE)) {
    const tail = await storage.open(TAIL_FILE, "read");
    tailBytes = await tail.size();
    await tail.close();
  }
  if (holdsFiles || tailBytes > 0) {
    throw new CorruptLogError("manifest.json is missing from a log that holds events");
  }
}

async function recoverTail(
  file: StorageFile,
  onBatch: (entry: BatchEntry) => void,
  report: Report,
): Promise<CommitFile> {
  const sizeBytes = await usedBytes(file, await file.size());
  const tail = new CommitFile(TAIL_FILE, file);
  const fault = await loadCommits(tail, sizeBytes, onBatch);
  if (fault !== null) {
    const corruption = await remnantFault(file, sizeBytes, tail.endBytes);
    if (corruption !== null) throw corruptAt(tail, `${fault}; ${corruption}`);
    await file.truncate(tail.endBytes);
    report(
      `${TAIL_FILE}: removed ${sizeBytes - tail.endBytes} bytes of an unfinished commit after ` +
        (tail.lastEventId === null ? "the start of the file" : `event ${tail.lastEventId}`),
    );
  }
  return tail;
}

/**
 * Makes the previous process's writes durable before anything reads them. After a failed fsync,
 * pages of the last commit may be clean in the page cache but not on disk, so that commit is
 * rewritten. Truncation is also repeated, since the disk may still hold the removed bytes.
 */
async function makeDurable({ file, lastCommitOffset, endBytes }: CommitFile) {
  const chunk = new Uint8Array(Math.min(endBytes - lastCommitOffset, READ_CHUNK_BYTES));
  for (let offset = lastCommitOffset; offset < endBytes;) {
    const wanted = chunk.subarray(0, Math.min(chunk.length, endBytes - offset));
    const readBytes = await file.read(wanted, offset);
    assert(readBytes === wanted.length, "a recovered commit must be complete");
    await file.write(wanted, offset);
    offset += readBytes;
  }
  await file.truncate(endBytes);
  await file.sync();
}

/** @param mayBeMissing whether a rotation may have been interrupted before it created the tail. */
async function openTail(storage: Storage, mayBeMissing: boolean): Promise<StorageFile> {
  try {
    return await storage.open(TAIL_FILE, "write");
  } catch (error) {
    if (!isNotFound(error)) throw error;
    if (!mayBeMissing) throw new CorruptLogError(`${TAIL_FILE} is missing`, { cause: error });
  }
  await createTail(storage);
  return await storage.open(TAIL_FILE, "write");
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
