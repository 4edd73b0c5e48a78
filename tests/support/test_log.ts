/** Opens logs with a deterministic clock and deterministic randomness, and reads their contents. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { randomFillSync } from "node:crypto";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { PreparedBatch } from "../../src/event/types.ts";
import type { BatchEntry } from "../../src/log/wal/commit_frame.ts";
import { readCommits, type WholeCommit } from "../../src/log/wal/commit_reader.ts";
import { EventScan } from "../../src/log/read/event_scan.ts";
import { CorruptLogError } from "../../src/log/storage/errors.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { TAIL_FILE } from "../../src/log/storage/file_names.ts";
import { type Log, type LogOptions, openLog } from "../../src/log/log.ts";
import type { SealingOptions } from "../../src/log/sealing/sealer.ts";
import type { LogSnapshot } from "../../src/log/read/snapshot.ts";
import type { Storage, StorageFile } from "../../src/log/storage/storage.ts";
import { RESERVING_TAIL_BYTES_MIN } from "../../src/limits.ts";
import { SimulatedDisk, type Tree } from "./simulated_disk.ts";
import { preparedBatch } from "./prepared.ts";

/** 2026-01-01T00:00:00.000Z */
export const TEST_TIME_MS = 1_767_225_600_000;

/** The random bytes of the id 019b76da-a800-7001-8203-040506070809, as in the documents. */
const RANDOM = [0x00, 0x04, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x08, 0x09];

/** A clock that stands still, and random bytes that are always the same. */
export function testTime(): Pick<LogOptions, "clockMs" | "randomBytes"> {
  return {
    clockMs: () => TEST_TIME_MS,
    randomBytes: (into) => into.set(RANDOM),
  };
}

/** Options for a log on a real disk, with the real time and randomness. */
export function realOptions(folder: string): LogOptions {
  return {
    storage: fileStorage(folder),
    clockMs: Date.now,
    randomBytes: (into) => void randomFillSync(into),
    report() {},
  };
}

export interface OpenedLog {
  log: Log;
  /** Repairs reported on open. */
  reports: string[];
}

/** The unsealed batches in a log, in order. */
export async function unsealedBatches({ files: { unsealed } }: Log): Promise<BatchEntry[]> {
  const entries: BatchEntry[] = [];
  for (const { file, endBytes } of unsealed) {
    for await (const { commit } of commitsIn(file, endBytes)) entries.push(...commit.batches);
  }
  return entries;
}

/** The commits with events in the first `sizeBytes` of a file, all of which must be valid. */
export async function* commitsIn(
  file: StorageFile,
  sizeBytes: number,
): AsyncGenerator<WholeCommit, void> {
  const commits = readCommits(file, 0, sizeBytes);
  let next = await commits.next();
  for (; next.done !== true; next = await commits.next()) {
    if (next.value.commit.batches.length > 0) yield next.value;
  }
  assert.equal(next.value, null);
}

/** Configures sealing on a storage while the log is open. By default, nothing is sealed. */
export type SealingOn = (storage: Storage) => SealingOptions;

/** Options with a deterministic clock and deterministic randomness, and what will be reported. */
export function testOptions(storage: Storage, sealingOn?: SealingOn) {
  const reports: string[] = [];
  const options: LogOptions = {
    storage,
    ...testTime(),
    report: (line) => void reports.push(line),
    ...(sealingOn === undefined ? {} : { sealing: sealingOn(storage) }),
  };
  return { options, reports };
}

export async function openTestLog(storage: Storage, sealingOn?: SealingOn): Promise<OpenedLog> {
  const { options, reports } = testOptions(storage, sealingOn);
  return { log: await openLog(options), reports };
}

/** Opens a log, appends batches, each in a commit of its own, and closes the log. */
export async function appendTo(
  storage: Storage,
  ...batches: (string | PreparedBatch)[]
): Promise<void> {
  const { log } = await openTestLog(storage);
  for (const batch of batches) {
    await log.append([typeof batch === "string" ? preparedBatch(batch) : batch]);
  }
  await log.close();
}

/**
 * The files of a log whose process was killed after these commits. Each commit is a list of batch
 * ids. An empty list stands for a clean shutdown and a restart.
 */
export async function logTree(commits: readonly (readonly string[])[]): Promise<Tree> {
  const storage = new SimulatedDisk();
  let { log } = await openTestLog(storage);
  for (const batchIds of commits) {
    if (batchIds.length > 0) {
      await log.append(batchIds.map((batchId) => preparedBatch(batchId)));
    } else {
      await log.close();
      log = (await openTestLog(storage)).log;
    }
  }
  return storage.tree();
}

/** A cleanly closed log, with the batch `large`, whose next commits reserve space. */
export async function largeTailTree(): Promise<Tree> {
  const storage = new SimulatedDisk();
  const payload = "x".repeat(RESERVING_TAIL_BYTES_MIN);
  await appendTo(storage, preparedBatch("large", { events: [{ payload }] }));
  return storage.tree();
}

/** The options of a scan of all events. */
export const WHOLE = {
  after: undefined,
  filter: {},
  limitEvents: Infinity,
  limitBytes: Infinity,
};

/** All events in a snapshot, or those after a given one, read by the code under test. */
export async function readAll(snapshot: LogSnapshot, after?: string): Promise<CommittedEvent[]> {
  const scan = new EventScan(snapshot, { ...WHOLE, after });
  return JSON.parse(`[${await joinPieces(scan)}]`);
}

/** Opens and closes a log. @returns its events, and the lines it reported. */
export async function readBack(
  storage: Storage,
): Promise<{ events: CommittedEvent[]; reports: string[] }> {
  const { log, reports } = await openTestLog(storage);
  const events = await readAll(log.snapshot);
  await log.close();
  return { events, reports };
}

/** The events in a log, which must open without reports. */
export async function eventsOf(storage: Storage): Promise<CommittedEvent[]> {
  const { events, reports } = await readBack(storage);
  assert.deepEqual(reports, []);
  return events;
}

/** The batch ids of a log's events. The log must open without reports. */
export async function batchIdsOf(storage: Storage): Promise<string[]> {
  return (await eventsOf(storage)).map(({ batch_id }) => batch_id);
}

/** All pieces from a scan or replay, joined with commas as in a response. */
export async function joinPieces(
  scan: { next(): Promise<Uint8Array | null> },
): Promise<string> {
  const pieces: string[] = [];
  for (let piece = await scan.next(); piece !== null; piece = await scan.next()) {
    if (piece.length > 0) pieces.push(Buffer.from(piece).toString());
  }
  return pieces.join(",");
}

/** The offset of each commit in a tail, and the end of the last one. */
export function commitOffsets(tail: Uint8Array): number[] {
  const bytes = Buffer.from(tail);
  const offsets = [0];
  // Only reserved space has no LF.
  for (let offset = 0; offset < bytes.length && bytes.includes("\n", offset);) {
    const lineEnd = bytes.indexOf("\n", offset);
    const { commit } = JSON.parse(bytes.toString("utf8", offset, lineEnd));
    offset = lineEnd + 1 + commit.bytes;
    offsets.push(offset);
  }
  return offsets;
}

/** The number of commits in the tail of a log. */
export function commitCount(storage: SimulatedDisk): number {
  return commitOffsets(tailOf(storage.tree())).length - 1;
}

/** A copy of a tree with a different tail. */
export function withTail(tree: Tree, tail: Uint8Array): Tree {
  return new Map(tree).set(TAIL_FILE, tail);
}

export function tailOf(tree: Tree): Buffer {
  return Buffer.from(tree.get(TAIL_FILE)!);
}

/** Asserts that `openLog()` refuses a tree and leaves it unchanged. */
export async function assertRefused(
  tree: Tree,
  label: string,
  error: new (...parts: never[]) => Error = CorruptLogError,
): Promise<void> {
  const storage = new SimulatedDisk(tree);
  await assert.rejects(openTestLog(storage), error, label);
  assert.deepEqual(storage.tree(), new SimulatedDisk(tree).tree(), label);
  assert.equal(storage.openFiles, 0, `${label}: all files are closed`);
}
