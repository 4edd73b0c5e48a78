/**
 * Takes a consistent inventory of a log's files for `verify`. Since a writer may be active, the
 * listing must be the same before and after the files are opened; their descriptors then stay valid
 * even if the files are renamed.
 */
import {
  INDEX_FOLDER,
  isIndexName,
  MANIFEST_FILE,
  MANIFEST_TEMPORARY_FILE,
  parsePendingName,
  parseSegmentName,
  PENDING_FOLDER,
  SEGMENT_TEMPORARY_FILE,
  SEGMENTS_FOLDER,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
} from "../storage/file_names.ts";
import { chooseRuns, type Run } from "../index/run_plan.ts";
import { CorruptLogError, VerifyFailure } from "../storage/errors.ts";
import { EMPTY_MANIFEST, type Manifest, readManifest } from "../segment/manifest.ts";
import { usedBytes } from "../wal/reserved_space.ts";
import { isNotFound, type Storage, type StorageFile } from "../storage/storage.ts";

/** Maximum attempts to get a stable listing while a writer may move files. */
const LISTING_ATTEMPTS_MAX = 100;

/** The open tail or an open pending file. Only its first `sizeBytes` are read. */
export interface ListedFile {
  path: string;
  file: StorageFile;
  sizeBytes: number;
}

export interface Inventory {
  /** False until the first writer creates the manifest. Until then, the log has no events. */
  isStarted: boolean;
  manifest: Manifest;
  /** Pending files not covered by segments, in log order. The caller closes them and the tail. */
  pending: ListedFile[];
  /** Null if the log has no tail. */
  tail: ListedFile | null;
  /** Files that are not part of the log, sorted. */
  orphans: string[];
  /** The runs whose indexes are in use. */
  runs: readonly Run[];
  /** Leftovers from an interrupted first startup. */
  remnants: string[];
}

/**
 * Takes the inventory of an existing log directory.
 * @throws {VerifyFailure} `manifest_invalid`.
 * @throws {UnsupportedFormatError} if a newer program wrote the log.
 */
export async function takeInventory(storage: Storage): Promise<Inventory> {
  for (let attempt = 0; attempt < LISTING_ATTEMPTS_MAX; attempt++) {
    const names = await readNames(storage);
    const opened: ListedFile[] = [];
    let inventory: Inventory | null = null;
    try {
      const pending = names.pending.filter((name) => isUncovered(name, names));
      for (const path of [...pending.map((name) => `${PENDING_FOLDER}/${name}`), TAIL_FILE]) {
        // If a pending file has vanished, the second listing will show it.
        const listed = await openListed(storage, path);
        if (listed !== null) opened.push(listed);
      }
      if (isSame(names, await readNames(storage))) inventory = inventoryOf(names, opened);
    } finally {
      if (inventory === null) await closeFiles(opened);
    }
    if (inventory !== null) return inventory;
  }
  throw new Error("the log changed while it was being listed; run verify again");
}

export async function closeFiles(files: readonly ListedFile[]): Promise<void> {
  await Promise.allSettled(files.map(({ file }) => file.close()));
}

interface Names {
  manifest: Manifest | null;
  root: string[];
  pending: string[];
  segments: string[];
  /** Names that an index file can have. */
  indexes: string[];
}

async function readNames(storage: Storage): Promise<Names> {
  const manifest = await readListing(storage);
  const pending = await storage.list(PENDING_FOLDER) ?? [];
  // Listed after the pending files, so that a running rotation shows its new tail or that file.
  const root = await storage.list(".") ?? [];
  const segments = await storage.list(SEGMENTS_FOLDER) ?? [];
  const indexes = (await storage.list(INDEX_FOLDER) ?? []).filter(isIndexName);
  return { manifest, root, pending, segments, indexes };
}

async function readListing(storage: Storage): Promise<Manifest | null> {
  try {
    return await readManifest(storage, "read");
  } catch (error) {
    if (!(error instanceof CorruptLogError)) throw error;
    throw new VerifyFailure("manifest_invalid", error.message, { cause: error });
  }
}

/** Whether no file has moved. Comparing the manifests also covers the segments. */
function isSame(before: Names, after: Names): boolean {
  const moves = ({ manifest, pending }: Names) => JSON.stringify([manifest, pending]);
  return moves(before) === moves(after);
}

async function openListed(storage: Storage, path: string): Promise<ListedFile | null> {
  let file: StorageFile | null = null;
  try {
    file = await storage.open(path, "read");
    const sizeBytes = await file.size();
    if (path !== TAIL_FILE) return { path, file, sizeBytes };
    // Computed now, while the end is between two commits. The tail is read again, so that a disk
    // error is reported in its turn.
    return { path, file, sizeBytes: await usedBytes(file, sizeBytes).catch(() => sizeBytes) };
  } catch (error) {
    await file?.close().catch(() => {});
    if (isNotFound(error)) return null;
    throw error;
  }
}

/** Whether a pending file may contain unsealed events, according to its name. */
function isUncovered(name: string, names: Names): boolean {
  if (!name.endsWith(".ndjson")) return false;
  const range = parsePendingName(name);
  return range === null || range.lastEventId > lastSealedOf(names);
}

/** Returns the id of the last sealed event. If there is none, returns "", the lowest string. */
function lastSealedOf({ manifest }: Names): string {
  return manifest?.segments.at(-1)?.last_event_id ?? "";
}

function inventoryOf(names: Names, opened: readonly ListedFile[]): Inventory {
  const { manifest, root, pending, segments } = names;
  const isStarted = manifest !== null;
  const tail = opened.find(({ path }) => path === TAIL_FILE) ?? null;
  const isEmpty = pending.length + segments.length + (tail?.sizeBytes ?? 0) === 0;
  if (!isStarted && !isEmpty) {
    const message = `${MANIFEST_FILE}: is missing from a log that holds events`;
    throw new VerifyFailure("manifest_invalid", message);
  }
  // The first startup writes the manifest last.
  const steps = isStarted ? [] : [PENDING_FOLDER, SEGMENTS_FOLDER, TAIL_FILE];
  return {
    isStarted,
    manifest: manifest ?? EMPTY_MANIFEST,
    pending: opened.filter((listed) => listed !== tail),
    tail,
    remnants: steps.filter((name) => root.includes(name)),
    ...leftoversOf(names),
  };
}

/** Leftovers from interrupted writers. The next one keeps segments that no pending file covers. */
function leftoversOf(names: Names): Pick<Inventory, "orphans" | "runs"> {
  const listed = new Set(names.manifest?.segments.map(({ path }) => path));
  const temporary = [MANIFEST_TEMPORARY_FILE, TAIL_TEMPORARY_FILE];
  const orphans: string[] = names.root.filter((name) => temporary.includes(name));
  for (const name of names.pending) {
    if (parsePendingName(name) !== null && !isUncovered(name, names)) {
      orphans.push(`${PENDING_FOLDER}/${name}`);
    }
  }
  for (const name of names.segments) {
    const path = `${SEGMENTS_FOLDER}/${name}`;
    const isSegment = parseSegmentName(name) !== null && !listed.has(path);
    if (isSegment || path === SEGMENT_TEMPORARY_FILE) orphans.push(path);
  }
  const unused = new Set(names.indexes.map((name) => `${INDEX_FOLDER}/${name}`));
  const runs = chooseRuns(names.manifest?.segments ?? [], unused);
  for (const { path } of runs) unused.delete(path);
  return { orphans: [...orphans, ...unused].sort(), runs };
}
