/**
 * Opens a log directory for its writer: checks it, finishes what a crash interrupted, and makes the
 * result durable (docs/format.md, "Recovery"). Recovery is idempotent.
 */
import { assert } from "../assert.ts";
import { READ_CHUNK_BYTES } from "../limits.ts";
import { GENESIS_HEAD_HEX } from "../event/chain.ts";
import { committedTwice } from "./wal/batch_index.ts";
import type { BatchEntry } from "./wal/commit_frame.ts";
import { CommitFile, corruptAt, loadCommits } from "./wal/commit_file.ts";
import { usedBytes } from "./wal/reserved_space.ts";
import type { OwnedStorage } from "./storage/owned_storage.ts";
import {
  findUnlisted,
  INDEX_TEMPORARY_FILE,
  isWithinPending,
  LOCK_FILE,
  MANIFEST_FILE,
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
import { LogFiles } from "./sealing/log_files.ts";
import { createTail, syncNames } from "./wal/rotation.ts";
import type { RowGroupDecoder } from "./segment/row_group_decoder.ts";
import { SealedHistory } from "./segment/sealed_history.ts";
import { isNotFound, removeIfThere, type Storage, type StorageFile } from "./storage/storage.ts";

export interface RecoveredLog {
  manifest: Manifest;
  files: LogFiles;
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
  storage: OwnedStorage,
  { report, decoder }: Omit<RecoveryOptions, "storage">,
): Promise<RecoveredLog> {
  await storage.hold(LOCK_FILE);
  const manifest = await prepareFolder(storage);
  const opened: Pick<StorageFile, "close">[] = [];
  try {
    const sealed = new SealedHistory(storage, { report, decoder });
    opened.push(sealed);
    return await recoverFiles(storage, manifest, report, sealed, opened);
  } catch (error) {
    await Promise.allSettled(opened.map((file) => file.close()));
    throw error;
  }
}

/** @param opened receives every file that stays open. */
async function recoverFiles(
  storage: OwnedStorage,
  manifest: Manifest,
  report: Report,
  sealed: SealedHistory,
  opened: Pick<StorageFile, "close">[],
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
  let head = manifest.segments.at(-1)?.head ?? GENESIS_HEAD_HEX;
  for (const name of names.uncovered) {
    const path = `${PENDING_FOLDER}/${name}`;
    const file = await storage.open(path, "read");
    opened.push(file);
    const loaded = await recoverPending(file, path, head, onBatch(path));
    pending.push(loaded);
    head = loaded.head ?? head;
  }
  const { path, file } = await openTail(storage, pending.length > 0);
  opened.push(file);
  const tail = new CommitFile(TAIL_FILE, file);
  const usedEnd = await loadTail(tail, head, onBatch(TAIL_FILE));
  const firstEventId = [...pending, tail][0]!.firstEventId;
  const orphans = await findOrphans(storage, manifest, { firstEventId, lastEventId });
  // Up to here, nothing was changed.
  if (usedEnd > tail.endBytes) {
    report(
      `${TAIL_FILE}: removed ${usedEnd - tail.endBytes} bytes of an unfinished commit after ` +
        (tail.lastEventId === null ? "the start of the file" : `event ${tail.lastEventId}`),
    );
  }
  await makeDurable(tail);
  if (path !== TAIL_FILE) await storage.rename(path, TAIL_FILE);
  await syncNames(storage);
  await removeLeftovers(storage, manifest, { ...names, orphans }, report);
  const paths = [...pending, ...manifest.segments.slice(-1)].map(({ path }) => path);
  await storage.hold(TAIL_FILE, MANIFEST_FILE, PENDING_FOLDER, SEGMENTS_FOLDER, ...paths);
  const files = new LogFiles(sealed, [...pending, tail]);
  return { manifest, files, head: tail.head ?? head };
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
  previousHead: string,
  onBatch: (entry: BatchEntry) => void,
): Promise<CommitFile> {
  const target = new CommitFile(path, file);
  const { fault } = await loadCommits(target, await file.size(), previousHead, onBatch);
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

/** Removes the leftovers from an interrupted seal. */
async function removeLeftovers(
  storage: Storage,
  manifest: Manifest,
  { covered, uncovered, orphans }: PendingNames & { orphans: readonly string[] },
  report: Report,
): Promise<void> {
  await removeTemporaryFiles(storage);
  // After a failed fsync the page cache may hold a manifest that is not on disk. Rewrite it before
  // removing the files that it covers.
  if (covered.length > 0) await writeManifest(storage, manifest);
  for (const name of covered) await storage.remove(`${PENDING_FOLDER}/${name}`);
  for (const path of orphans) {
    const name = path.slice(SEGMENTS_FOLDER.length + 1);
    if (path === SEGMENT_TEMPORARY_FILE || isWithinPending(name, uncovered)) {
      await storage.remove(path);
    } else {
      report(`${path}: not in the manifest, left in place`);
    }
  }
  await storage.syncFolder(PENDING_FOLDER);
  await storage.syncFolder(SEGMENTS_FOLDER);
}

/**
 * Returns the paths in the segments directory that the manifest does not list.
 * @throws {CorruptLogError} if the manifest is older than one of them; see `findUnlisted()`.
 */
async function findOrphans(
  storage: Storage,
  { segments }: Manifest,
  unsealed: Parameters<typeof findUnlisted>[2],
): Promise<string[]> {
  const listed = new Set(segments.map(({ path }) => path));
  const orphans = (await storage.list(SEGMENTS_FOLDER) ?? [])
    .map((name) => `${SEGMENTS_FOLDER}/${name}`).filter((path) => !listed.has(path));
  const next = findUnlisted(orphans, segments.at(-1)?.last_event_id, unsealed);
  if (next === undefined) return orphans;
  throw new CorruptLogError(`${MANIFEST_FILE}: does not list the next segment, ${next}`);
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

/** Removes a temporary manifest, tail or index that was never renamed. */
async function removeTemporaryFiles(storage: Storage): Promise<void> {
  for (const path of [MANIFEST_TEMPORARY_FILE, TAIL_TEMPORARY_FILE, INDEX_TEMPORARY_FILE]) {
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

/** Reads the tail. Returns the end of its bytes, which may be the remnant of another commit. */
async function loadTail(
  tail: CommitFile,
  previousHead: string,
  onBatch: (entry: BatchEntry) => void,
): Promise<number> {
  const { file } = tail;
  const usedEnd = await usedBytes(file, await file.size());
  const { fault, corruption } = await loadCommits(tail, usedEnd, previousHead, onBatch);
  if (corruption !== null) throw corruptAt(tail, `${fault}; ${corruption}`);
  return usedEnd;
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

/** Opens the tail, or the file that an interrupted rotation was to rename to it. */
async function openTail(
  storage: Storage,
  hasPending: boolean,
): Promise<{ path: string; file: StorageFile }> {
  for (const path of hasPending ? [TAIL_FILE, TAIL_TEMPORARY_FILE] : [TAIL_FILE]) {
    try {
      return { path, file: await storage.open(path, "write") };
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  throw new CorruptLogError(`${TAIL_FILE} is missing`);
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
