/**
 * A pass-through behind the seam of the log which fails the test at once when steps come in an
 * order that a crash could punish, whether or not one comes. It knows what it has seen, nothing of
 * how the log works but the names of its files:
 *
 * - a receipt leaves only when its bytes are synced, under a name that is; segments and the
 *   manifest that lists more of them may be on their way beside it;
 * - a file is renamed only when its bytes are synced;
 * - a pending file is removed only when a manifest that covers it is durable under its name, and so
 *   are its segments; an unlisted segment only while a pending file covers it; the tail and the
 *   manifest never;
 * - a sealed or pending file, or the manifest, is never written to, nor opened for it;
 * - bytes that were synced are neither written over nor cut off;
 * - after a sync that failed, a file is not written to or synced any more.
 */
import { Buffer } from "node:buffer";
import { setImmediate } from "node:timers";
import {
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
import { folderOf } from "./simulated_names.ts";

/** Steps came in an order that a crash could punish. */
export class OrderViolation extends Error {
  override name = "OrderViolation";
}

/** Fails the test, also where the code under test catches what is thrown. */
function fail(what: string): never {
  const violation = new OrderViolation(what);
  setImmediate(() => {
    throw violation;
  });
  throw violation;
}

/** What is known of a file. */
interface Watched {
  path: string;
  /** Its bytes as far as they were written or read here; for the manifest alone. */
  content: Buffer;
  unsynced: Buffer[];
  /** Where what was written here ends. */
  writtenEnd: number;
  /** All before was written here and is synced. */
  syncedEnd: number;
  /** Whether all that it holds is durable, as far as can be told. */
  isSynced: boolean;
  hasFailed: boolean;
}

/** A change of names; durable once all its folders are synced. */
interface NameChange {
  path: string;
  folders: Set<string>;
  /** Whether it put a manifest in the place of another: a log can be read by either. */
  isReplaced: boolean;
}

const TEMPORARY_FILES = [MANIFEST_TEMPORARY_FILE, SEGMENT_TEMPORARY_FILE, TAIL_TEMPORARY_FILE];
const EVENT_ID = /"(?:first|last)_event_id":"([^"]+)"/g;

export class OrderMonitor implements Storage {
  readonly #inner: Storage;
  readonly #fail: (what: string) => never;
  readonly #files = new Map<string, Watched>();
  #names: NameChange[] = [];
  #pendingNames: readonly string[] = [];
  /** First and last events of batches whose sync has been seen. */
  readonly #syncedIds = new Set<string>();

  /** @param onViolation fails the test if absent. */
  constructor(inner: Storage, onViolation: (what: string) => never = fail) {
    this.#inner = inner;
    this.#fail = onViolation;
  }

  /** A receipt leaves; `isNew` when its batch was committed for it. */
  receipt(eventId: string, { isNew }: { isNew: boolean }): void {
    const tail = this.#files.get(TAIL_FILE);
    if (tail === undefined || !tail.isSynced || tail.unsynced.length > 0) {
      this.#fail(`a receipt for event ${eventId} leaves before the tail is synced`);
    }
    if (isNew && !this.#syncedIds.has(eventId)) {
      this.#fail(`a receipt for event ${eventId} leaves, which was not written`);
    }
    const change = this.#names.find(({ path, isReplaced }) =>
      !isReplaced && !TEMPORARY_FILES.includes(path) && folderOf(path) !== SEGMENTS_FOLDER
    );
    if (change !== undefined) {
      this.#fail(`a receipt for event ${eventId} leaves before the name ${change.path} is synced`);
    }
  }

  /** Events are given to a reader. */
  reading(bytes: Uint8Array): void {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (const unsynced of this.#files.get(TAIL_FILE)?.unsynced ?? []) {
      const eventId = idsOf(unsynced).find((id) => text.includes(id));
      if (eventId !== undefined) this.#fail(`event ${eventId} is read before its sync`);
    }
  }

  async open(path: string, mode: OpenMode): Promise<StorageFile> {
    if (mode === "write" && isFinal(path)) this.#fail(`${path} is opened to be written to`);
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
    // A removal that is undone harms nobody.
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

  #renamed(path: string, paths: readonly string[], isReplaced = false): void {
    this.#names.push({ path, folders: new Set(paths.map(folderOf)), isReplaced });
  }

  #isNameSynced(path: string): boolean {
    return this.#names.every((change) => change.path !== path);
  }

  /** That what replaces a file is durable before it goes. */
  #assertReplaced(path: string): void {
    if (TEMPORARY_FILES.includes(path)) return;
    const name = path.slice(path.lastIndexOf("/") + 1);
    const pending = folderOf(path) === PENDING_FOLDER ? parsePendingName(name) : null;
    const segment = folderOf(path) === SEGMENTS_FOLDER ? parseSegmentName(name) : null;
    const { segments } = this.#manifest();
    if (pending !== null) {
      const isCovered = (segments.at(-1)?.last_event_id ?? "") >= pending.lastEventId;
      const paths = [MANIFEST_FILE, ...segments.map((entry) => entry.path)];
      const unsynced = paths.find((path) => !this.#isNameSynced(path));
      if (!isCovered) this.#fail(`${path} is removed, and no manifest covers it`);
      if (unsynced !== undefined) this.#fail(`${path} is removed before ${unsynced} is durable`);
      if (!this.#files.get(MANIFEST_FILE)!.isSynced) {
        this.#fail(`${path} is removed, and the manifest was not made durable`);
      }
    } else if (segment !== null) {
      const isListed = segments.some((entry) => entry.path === path);
      const isHeld = this.#pendingNames.map(parsePendingName).some((range) =>
        range !== null && range.firstEventId <= segment.firstEventId &&
        segment.lastEventId <= range.lastEventId
      );
      if (isListed || !isHeld) {
        this.#fail(`${path} is removed, and no pending file holds its events`);
      }
    } else {
      this.#fail(`${path} is removed`);
    }
  }

  /** The manifest as it was read or put in place here. */
  #manifest(): Pick<Manifest, "segments"> {
    const content = this.#files.get(MANIFEST_FILE)?.content;
    return content === undefined ? { segments: [] } : JSON.parse(content.toString());
  }

  #watch(file: StorageFile, watched: Watched): StorageFile {
    return {
      read: async (into, position) => {
        const bytes = await file.read(into, position);
        if (watched.path === MANIFEST_FILE) keep(watched, into.subarray(0, bytes), position);
        return bytes;
      },
      write: async (bytes, position) => {
        this.#assertWritable(watched, "written to");
        if (position < watched.syncedEnd) {
          this.#fail(`${watched.path}: synced bytes are overwritten`);
        }
        if (watched.path === MANIFEST_TEMPORARY_FILE) keep(watched, bytes, position);
        watched.isSynced = false;
        if (watched.path === TAIL_FILE) watched.unsynced.push(Buffer.from(bytes));
        watched.writtenEnd = Math.max(watched.writtenEnd, position + bytes.length);
        await file.write(bytes, position);
      },
      sync: async () => {
        this.#assertWritable(watched, "synced");
        const { writtenEnd, unsynced: { length: synced } } = watched;
        // As a sync of a real disk does, it lets others go on: who does not wait for it is seen.
        await new Promise<void>((resolve) => setImmediate(resolve));
        try {
          await file.sync();
        } catch (error) {
          watched.hasFailed = true;
          throw error;
        }
        for (const bytes of watched.unsynced.splice(0, synced)) {
          for (const id of idsOf(bytes)) this.#syncedIds.add(id);
        }
        watched.syncedEnd = writtenEnd;
        watched.isSynced = watched.unsynced.length === 0;
      },
      truncate: async (sizeBytes) => {
        this.#assertWritable(watched, "truncated");
        if (sizeBytes < watched.syncedEnd) this.#fail(`${watched.path}: synced bytes are cut off`);
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
    if (hasFailed) this.#fail(`${path} is ${how} again after a sync that failed`);
  }
}

function newlyWatched(path: string, mode: OpenMode): Watched {
  return {
    path,
    content: Buffer.alloc(0),
    unsynced: [],
    writtenEnd: 0,
    syncedEnd: 0,
    // Of what was there before it cannot be told, but it is of no matter until it is built upon.
    isSynced: mode === "read",
    hasFailed: false,
  };
}

/** Whether no byte of a file of that name ever changes. */
function isFinal(path: string): boolean {
  return path === MANIFEST_FILE || folderOf(path) === PENDING_FOLDER ||
    (folderOf(path) === SEGMENTS_FOLDER && path !== SEGMENT_TEMPORARY_FILE);
}

function keep(watched: Watched, bytes: Uint8Array, position: number): void {
  watched.content = Buffer.concat([watched.content.subarray(0, position), bytes]);
}

/** The first and last events of the batches of a commit. */
function idsOf(commit: Buffer): string[] {
  const header = commit.toString("latin1", 0, commit.indexOf("\n"));
  return [...header.matchAll(EVENT_ID)].map((match) => match[1]!);
}
