/**
 * A pass-through storage that fails the test as soon as operations occur in an order that a crash
 * could expose, whether or not a crash follows. It knows only the operations it has observed, and
 * the names of the log's files. Its rules:
 *
 * - A receipt is sent only after its commit and the name of the commit's file are synced. New
 *   segments, and a manifest that lists them, need not be synced.
 * - A file is renamed only after its bytes are synced.
 * - A pending file is removed only after a manifest that covers it and the segments listed there
 *   are durable under their names. An unlisted segment is removed only while a pending file covers
 *   it. The tail and the manifest are never removed.
 * - An index is removed only after the indexes written before are durable under their names. No
 *   receipt needs an index.
 * - A segment, a pending file or the manifest is never written to or opened for writing.
 * - Synced bytes are neither overwritten nor truncated.
 * - After a failed sync, a file is never written to or synced.
 */
import { Buffer } from "node:buffer";
import { setImmediate } from "node:timers";
import {
  INDEX_FOLDER,
  INDEX_TEMPORARY_FILE,
  MANIFEST_FILE,
  MANIFEST_TEMPORARY_FILE,
  parsePendingName,
  parseSegmentName,
  PENDING_FOLDER,
  SEGMENT_TEMPORARY_FILE,
  SEGMENTS_FOLDER,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
} from "../../src/log/storage/file_names.ts";
import type { Manifest } from "../../src/log/segment/manifest.ts";
import type { OpenMode, Storage, StorageFile } from "../../src/log/storage/storage.ts";
import { LF } from "../../src/log/line/line_bytes.ts";
import { folderOf } from "./simulated_names.ts";

/** Thrown when operations occur in an order that a crash could expose. */
export class OrderViolation extends Error {
  override name = "OrderViolation";
}

/** Fails the test even if the code under test catches the error. */
function fail(what: string): never {
  const violation = new OrderViolation(what);
  setImmediate(() => {
    throw violation;
  });
  throw violation;
}

/** The observed state of a file. */
interface Watched {
  path: string;
  /** Bytes written or read through this storage. Kept only for the manifest. */
  content: Buffer;
  unsynced: Buffer[];
  /** End of the bytes written through this storage. */
  writtenEnd: number;
  /** End of the bytes written and synced through this storage. */
  syncedEnd: number;
  /** Whether all bytes of the file are known to be durable. */
  isSynced: boolean;
  hasFailed: boolean;
}

/** A name change, which is durable once all its directories are synced. */
interface NameChange {
  path: string;
  folders: Set<string>;
  /** Whether one manifest replaced another. The log is readable with either. */
  isReplaced: boolean;
}

const TEMPORARY_FILES = [
  ...[MANIFEST_TEMPORARY_FILE, SEGMENT_TEMPORARY_FILE, TAIL_TEMPORARY_FILE, INDEX_TEMPORARY_FILE],
];
const EVENT_ID = /"(?:first|last)_event_id":"([^"]+)"/g;

export class OrderMonitor implements Storage {
  readonly #inner: Storage;
  readonly #fail: (what: string) => never;
  readonly #files = new Map<string, Watched>();
  #names: NameChange[] = [];
  #pendingNames: readonly string[] = [];
  /**
   * First and last event ids of the batches that have been synced, each with the name that was then
   * still to be synced.
   */
  readonly #syncedIds = new Map<string, NameChange | undefined>();

  /** @param onViolation throws an error. The default also fails the test. */
  constructor(inner: Storage, onViolation: (what: string) => never = fail) {
    this.#inner = inner;
    this.#fail = onViolation;
  }

  /** Called when a receipt is sent. @param isNew false if the batch is a duplicate. */
  receipt(eventId: string, { isNew }: { isNew: boolean }): void {
    // The next commit and a rotation may begin in the turns between a sync and its receipts.
    const isUnsynced = (this.#files.get(TAIL_FILE)?.unsynced ?? [])
      .some((bytes) => idsOf(bytes).includes(eventId));
    if (isUnsynced) this.#fail(`a receipt for event ${eventId} is sent before the tail is synced`);
    if (isNew && !this.#syncedIds.has(eventId)) {
      this.#fail(`a receipt is sent for event ${eventId}, which was not written`);
    }
    const change = this.#syncedIds.get(eventId);
    if (change !== undefined && this.#names.includes(change)) {
      this.#fail(`a receipt for event ${eventId} is sent before the name ${change.path} is synced`);
    }
  }

  /** Returns the first change of a name on which a receipt depends. */
  #neededName(): NameChange | undefined {
    const isNeeded = (path: string) =>
      !TEMPORARY_FILES.includes(path) && folderOf(path) !== SEGMENTS_FOLDER &&
      path !== INDEX_FOLDER && folderOf(path) !== INDEX_FOLDER;
    return this.#names.find(({ path, isReplaced }) => !isReplaced && isNeeded(path));
  }

  /** Called when events are sent to a reader. */
  reading(bytes: Uint8Array): void {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (const unsynced of this.#files.get(TAIL_FILE)?.unsynced ?? []) {
      const eventId = idsOf(unsynced).find((id) => text.includes(id));
      if (eventId !== undefined) this.#fail(`event ${eventId} is read before its sync`);
    }
  }

  async open(path: string, mode: OpenMode): Promise<StorageFile> {
    if (mode === "write" && isFinal(path)) this.#fail(`${path} is opened for writing`);
    const file = await this.#inner.open(path, mode);
    if (mode === "create") {
      this.#files.delete(path);
      this.#renamed(path, [path]);
    }
    const watched = this.#files.get(path) ?? newlyWatched(path, mode);
    this.#files.set(path, watched);
    return this.#watch(file, watched);
  }

  async list(folder: string): Promise<string[] | null> {
    const names = await this.#inner.list(folder);
    if (folder === PENDING_FOLDER) this.#pendingNames = names ?? [];
    return names;
  }

  async rename(from: string, to: string): Promise<void> {
    const watched = this.#files.get(from);
    if (watched === undefined || !watched.isSynced || watched.unsynced.length > 0) {
      this.#fail(`${from} is renamed to ${to} before its bytes are synced`);
    }
    const isReplaced = to === MANIFEST_FILE && this.#files.has(to);
    await this.#inner.rename(from, to);
    this.#files.delete(from);
    watched.path = to;
    this.#files.set(to, watched);
    if (folderOf(to) === PENDING_FOLDER) {
      this.#pendingNames = [...this.#pendingNames, to.slice(PENDING_FOLDER.length + 1)];
    }
    this.#renamed(to, [from, to], isReplaced);
  }

  async remove(path: string): Promise<void> {
    this.#assertReplaced(path);
    await this.#inner.remove(path);
    this.#files.delete(path);
    this.#pendingNames = this.#pendingNames.filter((name) => `${PENDING_FOLDER}/${name}` !== path);
    // A crash that undoes a removal does no harm.
    this.#names = this.#names.filter((change) => change.path !== path);
  }

  async makeFolder(path: string): Promise<void> {
    await this.#inner.makeFolder(path);
    this.#renamed(path, [path]);
  }

  async syncFolder(folder: string): Promise<void> {
    await this.#inner.syncFolder(folder);
    for (const { folders } of this.#names) folders.delete(folder);
    this.#names = this.#names.filter(({ folders }) => folders.size > 0);
  }

  closeFolders(): Promise<void> {
    return this.#inner.closeFolders();
  }

  identity(path: string): Promise<string> {
    return this.#inner.identity(path);
  }

  #renamed(path: string, paths: readonly string[], isReplaced = false): void {
    this.#names.push({ path, folders: new Set(paths.map(folderOf)), isReplaced });
  }

  #isNameSynced(path: string): boolean {
    return this.#names.every((change) => change.path !== path);
  }

  /** Checks that a file's replacement is durable before the file is removed. */
  #assertReplaced(path: string): void {
    if (TEMPORARY_FILES.includes(path)) return;
    if (folderOf(path) === INDEX_FOLDER) {
      const unsynced = this.#names.find(({ path }) =>
        folderOf(path) === INDEX_FOLDER && !TEMPORARY_FILES.includes(path)
      );
      if (unsynced === undefined) return;
      this.#fail(`${path} is removed before ${unsynced.path} is durable`);
    }
    const name = path.slice(path.lastIndexOf("/") + 1);
    const pending = folderOf(path) === PENDING_FOLDER ? parsePendingName(name) : null;
    const segment = folderOf(path) === SEGMENTS_FOLDER ? parseSegmentName(name) : null;
    const { segments } = this.#manifest();
    if (pending !== null) {
      const isCovered = (segments.at(-1)?.last_event_id ?? "") >= pending.lastEventId;
      const paths = [MANIFEST_FILE, ...segments.map((entry) => entry.path)];
      const unsynced = paths.find((path) => !this.#isNameSynced(path));
      if (!isCovered) this.#fail(`${path} is removed, but no manifest covers it`);
      if (unsynced !== undefined) this.#fail(`${path} is removed before ${unsynced} is durable`);
      if (!this.#files.get(MANIFEST_FILE)!.isSynced) {
        this.#fail(`${path} is removed, but the manifest is not durable`);
      }
    } else if (segment !== null) {
      const isListed = segments.some((entry) => entry.path === path);
      const isHeld = this.#pendingNames.map(parsePendingName).some((range) =>
        range !== null && range.firstEventId <= segment.firstEventId &&
        segment.lastEventId <= range.lastEventId
      );
      if (isListed || !isHeld) {
        this.#fail(`${path} is removed, but no pending file contains its events`);
      }
    } else {
      this.#fail(`${path} is removed`);
    }
  }

  /** The manifest as it was last read or renamed here. */
  #manifest(): Pick<Manifest, "segments"> {
    const content = this.#files.get(MANIFEST_FILE)?.content;
    return content === undefined ? { segments: [] } : JSON.parse(content.toString());
  }

  #watch(file: StorageFile, watched: Watched): StorageFile {
    return {
      read: async (into, position, mode) => {
        const bytes = await file.read(into, position, mode);
        if (watched.path === MANIFEST_FILE) keep(watched, into.subarray(0, bytes), position);
        return bytes;
      },
      write: async (bytes, position, mode) => {
        this.#assertWritable(watched, "written to");
        if (position < watched.syncedEnd) {
          this.#fail(`${watched.path}: synced bytes are overwritten`);
        }
        if (watched.path === MANIFEST_TEMPORARY_FILE) keep(watched, bytes, position);
        watched.isSynced = false;
        if (watched.path === TAIL_FILE) watched.unsynced.push(Buffer.from(bytes));
        // Reserved space, which contains no LF, may be overwritten.
        const isTail = watched.path === TAIL_FILE;
        const usedBytes = isTail ? bytes.lastIndexOf(LF) + 1 : bytes.length;
        watched.writtenEnd = Math.max(watched.writtenEnd, position + usedBytes);
        await file.write(bytes, position, mode);
      },
      sync: async (mode) => {
        this.#assertWritable(watched, "synced");
        const { writtenEnd, unsynced: { length: synced } } = watched;
        // Yields as a real sync would, to expose callers that do not await it.
        await new Promise<void>((resolve) => setImmediate(resolve));
        try {
          await file.sync(mode);
        } catch (error) {
          watched.hasFailed = true;
          throw error;
        }
        for (const bytes of watched.unsynced.splice(0, synced)) {
          for (const id of idsOf(bytes)) this.#syncedIds.set(id, this.#neededName());
        }
        watched.syncedEnd = writtenEnd;
        watched.isSynced = watched.unsynced.length === 0;
      },
      truncate: async (sizeBytes) => {
        this.#assertWritable(watched, "truncated");
        if (sizeBytes < watched.syncedEnd) {
          this.#fail(`${watched.path}: synced bytes are truncated`);
        }
        await file.truncate(sizeBytes);
        watched.isSynced = false;
        watched.writtenEnd = sizeBytes;
        watched.unsynced = [];
      },
      size: () => file.size(),
      close: () => file.close(),
    };
  }

  #assertWritable({ path, hasFailed }: Watched, how: string): void {
    if (isFinal(path)) this.#fail(`${path} is ${how}`);
    if (hasFailed) this.#fail(`${path} is ${how} after a failed sync`);
  }
}

function newlyWatched(path: string, mode: OpenMode): Watched {
  return {
    path,
    content: Buffer.alloc(0),
    unsynced: [],
    writtenEnd: 0,
    syncedEnd: 0,
    // A file opened for writing is considered unsynced until its next sync.
    isSynced: mode === "read",
    hasFailed: false,
  };
}

/** Whether files with this name are immutable. */
function isFinal(path: string): boolean {
  return path === MANIFEST_FILE || folderOf(path) === PENDING_FOLDER ||
    (folderOf(path) === SEGMENTS_FOLDER && path !== SEGMENT_TEMPORARY_FILE);
}

function keep(watched: Watched, bytes: Uint8Array, position: number): void {
  watched.content = Buffer.concat([watched.content.subarray(0, position), bytes]);
}

/** The first and last event ids of the batches in a commit. */
function idsOf(commit: Buffer): string[] {
  const header = commit.toString("latin1", 0, commit.indexOf("\n"));
  return [...header.matchAll(EVENT_ID)].map((match) => match[1]!);
}
