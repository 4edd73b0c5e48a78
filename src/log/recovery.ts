/**
 * Opens what a log folder holds for a writer: checks it, finishes what a crash left half done, and
 * makes durable what it recovered (docs/format.md, "Recovery"). Run twice it changes nothing the
 * second time.
 */
import { assert } from "../assert.ts";
import { READ_CHUNK_BYTES } from "../limits.ts";
import { GENESIS_HEAD_HEX } from "../event/chain.ts";
import type { BatchEntry, Commit } from "./commit_frame.ts";
import { CommitFile, loadCommits } from "./commit_file.ts";
import {
  MANIFEST_TEMPORARY_FILE,
  parsePendingName,
  PENDING_FOLDER,
  SEGMENTS_FOLDER,
  TAIL_FILE,
} from "./layout.ts";
import { CorruptLogError } from "./log_error.ts";
import { EMPTY_MANIFEST, readManifest, writeManifest } from "./manifest.ts";
import { findCommitAfter } from "./remnant.ts";
import { isNotFound, type Storage, type StorageFile } from "./storage.ts";

/** What recovery tells the one who opens the log. */
export interface RecoveryListener {
  /** Every committed batch that is not sealed, in log order. */
  batch(entry: BatchEntry): void;
  /** A sentence for the operator: what was repaired. */
  report(line: string): void;
}

export interface RecoveredLog {
  /** Rotated tails, from oldest to newest. */
  pending: CommitFile[];
  tail: CommitFile;
  /** Last event of the log; null for an empty one. */
  lastEventId: string | null;
  /** Chain head after it, 64 lowercase hex digits. */
  head: string;
}

/**
 * @throws {CorruptLogError} committed bytes are damaged or missing; nothing was changed.
 * @throws {UnsupportedFormatError} a newer program wrote the folder.
 */
export async function recover(
  storage: Storage,
  listener: RecoveryListener,
): Promise<RecoveredLog> {
  await prepareFolder(storage);
  const opened: StorageFile[] = [];
  try {
    return await recoverFiles(storage, listener, opened);
  } catch (error) {
    for (const file of opened) await file.close();
    throw error;
  }
}

/** @param opened is told of every file that stays open. */
async function recoverFiles(
  storage: Storage,
  listener: RecoveryListener,
  opened: StorageFile[],
): Promise<RecoveredLog> {
  const order = new OrderCheck();
  const onCommit = (path: string) => (commit: Commit) => {
    for (const entry of commit.batches) {
      order.follow(entry, path);
      listener.batch(entry);
    }
  };
  const pending = [];
  for (const name of await pendingNames(storage)) {
    const file = await storage.open(`${PENDING_FOLDER}/${name}`, "read");
    opened.push(file);
    pending.push(await recoverPending(file, name, onCommit));
  }
  const file = await openTail(storage);
  opened.push(file);
  const tail = await recoverTail(file, onCommit(TAIL_FILE), listener);
  await makeDurable(tail);
  await storage.syncFolder(".");
  await removeTemporaryFiles(storage);
  const head = [tail, ...pending.toReversed()].find((file) => file.head !== null)?.head;
  return { pending, tail, lastEventId: order.lastEventId, head: head ?? GENESIS_HEAD_HEX };
}

/**
 * The manifest is made last in a new folder, so whatever else is there without one has lost it;
 * only a first writer that was cut off before leaves an empty tail and empty folders.
 */
async function prepareFolder(storage: Storage): Promise<void> {
  const names = await storage.list(".");
  if (names === null) throw new Error("the log folder does not exist");
  if (await readManifest(storage) !== null) return;
  await assertNeverWritten(storage, names);
  for (const folder of [PENDING_FOLDER, SEGMENTS_FOLDER]) {
    if (!names.includes(folder)) await storage.makeFolder(folder);
  }
  if (!names.includes(TAIL_FILE)) await createTail(storage);
  await storage.syncFolder(".");
  await removeTemporaryFiles(storage);
  await writeManifest(storage, EMPTY_MANIFEST);
}

/** A manifest that was never put in place means nothing. */
async function removeTemporaryFiles(storage: Storage): Promise<void> {
  const names = await storage.list(".") ?? [];
  if (names.includes(MANIFEST_TEMPORARY_FILE)) await storage.remove(MANIFEST_TEMPORARY_FILE);
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

async function createTail(storage: Storage): Promise<void> {
  const file = await storage.open(TAIL_FILE, "create");
  await file.sync();
  await file.close();
}

/** Names of pending files in log order: a name begins with the first id, so that is name order. */
async function pendingNames(storage: Storage): Promise<string[]> {
  const names = (await storage.list(PENDING_FOLDER) ?? []).filter((name) =>
    name.endsWith(".ndjson")
  );
  const misnamed = names.find((name) => parsePendingName(name) === null);
  if (misnamed !== undefined) {
    throw new CorruptLogError(`${PENDING_FOLDER}/${misnamed}: not the name of a rotated tail`);
  }
  return names;
}

async function recoverPending(
  file: StorageFile,
  name: string,
  onCommit: (path: string) => (commit: Commit) => void,
): Promise<CommitFile> {
  const path = `${PENDING_FOLDER}/${name}`;
  const target = new CommitFile(path, file);
  const fault = await loadCommits(target, await file.size(), onCommit(path));
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

async function recoverTail(
  file: StorageFile,
  onCommit: (commit: Commit) => void,
  listener: RecoveryListener,
): Promise<CommitFile> {
  const sizeBytes = await file.size();
  const tail = new CommitFile(TAIL_FILE, file);
  const fault = await loadCommits(tail, sizeBytes, onCommit);
  if (fault !== null) {
    const followerOffset = await findCommitAfter(file, sizeBytes, tail.endBytes);
    if (followerOffset !== null) throw corruptAt(tail, fault);
    await file.truncate(tail.endBytes);
    listener.report(
      `${TAIL_FILE}: removed ${sizeBytes - tail.endBytes} bytes of an unfinished commit after ` +
        (tail.lastEventId === null ? "the start of the file" : `event ${tail.lastEventId}`),
    );
  }
  return tail;
}

/**
 * What the last process wrote may not be durable yet; it must be before anyone is told of it. Where
 * that process met a failed fsync, the system may show a last commit that is not on the disk and
 * that it does not think it must write: so its bytes are written again.
 */
async function makeDurable({ file, endsClean, lastCommitOffset, endBytes }: CommitFile) {
  const chunk = new Uint8Array(Math.min(endBytes - lastCommitOffset, READ_CHUNK_BYTES));
  for (let offset = endsClean ? endBytes : lastCommitOffset; offset < endBytes;) {
    const wanted = chunk.subarray(0, Math.min(chunk.length, endBytes - offset));
    const readBytes = await file.read(wanted, offset);
    assert(readBytes === wanted.length, "a recovered commit is whole");
    await file.write(wanted, offset);
    offset += readBytes;
  }
  await file.sync();
}

async function openTail(storage: Storage): Promise<StorageFile> {
  try {
    return await storage.open(TAIL_FILE, "write");
  } catch (error) {
    if (isNotFound(error)) throw new CorruptLogError(`${TAIL_FILE} is missing`, { cause: error });
    throw error;
  }
}

function corruptAt(file: CommitFile, fault: string): CorruptLogError {
  const after = file.lastEventId === null ? "" : `, after event ${file.lastEventId}`;
  return new CorruptLogError(
    `${file.path}: corrupt at byte ${file.endBytes}${after}: ${fault}; restore it from a backup`,
  );
}

/** Ids must increase over the whole log, whatever files it is in. */
class OrderCheck {
  lastEventId: string | null = null;

  follow(entry: BatchEntry, path: string): void {
    const { first_event_id: first, last_event_id: last } = entry;
    const ordered = first <= last && (entry.events === 1) === (first === last) &&
      (this.lastEventId === null || this.lastEventId < first);
    if (!ordered) {
      throw new CorruptLogError(
        `${path}: events ${first} to ${last} do not follow event ${this.lastEventId}`,
      );
    }
    this.lastEventId = last;
  }
}
