/**
 * What `verify` examines: the files of a log at one moment. A writer may be at work beside it, so
 * the inventory counts only if it is the same before and after its files were opened; from then on
 * they are read through these descriptors, wherever their names go.
 */
import {
  isWithinPending,
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
import { CorruptLogError } from "../storage/errors.ts";
import { EMPTY_MANIFEST, type Manifest, readManifest } from "../segment/manifest.ts";
import { isNotFound, type Storage, type StorageFile } from "../storage/storage.ts";
import { VerifyFailure } from "./failure.ts";

/** Attempts at a listing during which a writer may move files. */
const LISTING_ATTEMPTS_MAX = 100;

/** The tail or a pending file, open to be read up to the size that it had. */
export interface ListedFile {
  path: string;
  file: StorageFile;
  sizeBytes: number;
}

export interface Inventory {
  /** False before a first writer has made the manifest; the folder holds no events then. */
  isStarted: boolean;
  manifest: Manifest;
  /** Pending files that no segment covers, in log order. */
  pending: ListedFile[];
  /** Null in a folder without one. */
  tail: ListedFile | null;
  /** Files without a meaning, sorted. */
  orphans: string[];
  /** Those of the orphans that have the name of a segment and are not in a pending file. */
  unlisted: string[];
  /** What a first start that was cut off has left. */
  remnants: string[];
}

/**
 * Takes the inventory of a log folder that exists.
 * @throws {VerifyFailure} `manifest_invalid`.
 * @throws {UnsupportedFormatError} a newer program wrote the folder.
 */
export async function takeInventory(storage: Storage): Promise<Inventory> {
  for (let attempt = 0; attempt < LISTING_ATTEMPTS_MAX; attempt++) {
    const names = await readNames(storage);
    const files = await openFiles(storage, names);
    try {
      if (files !== null && isSame(names, await readNames(storage))) {
        return names.manifest === null
          ? unstarted(names, files)
          : started(names.manifest, names, files);
      }
    } catch (error) {
      await closeFiles(files);
      throw error;
    }
    await closeFiles(files);
  }
  throw new Error("the log changed while it was being listed; run verify again");
}

export async function closeInventory({ pending, tail }: Inventory): Promise<void> {
  await closeFiles({ pending, tail });
}

interface Names {
  manifest: Manifest | null;
  root: string[];
  pending: string[];
  segments: string[];
}

async function readNames(storage: Storage): Promise<Names> {
  return {
    manifest: await readListing(storage),
    root: await storage.list(".") ?? [],
    pending: await storage.list(PENDING_FOLDER) ?? [],
    segments: await storage.list(SEGMENTS_FOLDER) ?? [],
  };
}

async function readListing(storage: Storage): Promise<Manifest | null> {
  try {
    return await readManifest(storage, "read");
  } catch (error) {
    if (!(error instanceof CorruptLogError)) throw error;
    const what = error.message.replace(`${MANIFEST_FILE}: `, "");
    throw manifestFailure(what, { cause: error });
  }
}

function manifestFailure(what: string, options?: ErrorOptions): VerifyFailure {
  return new VerifyFailure("manifest_invalid", what, { path: MANIFEST_FILE }, options);
}

/** Whether nothing has moved. The names of segments tell nothing that the manifest does not. */
function isSame(before: Names, after: Names): boolean {
  const moves = ({ manifest, pending }: Names) => JSON.stringify([manifest, pending]);
  return moves(before) === moves(after);
}

type OpenedFiles = Pick<Inventory, "pending" | "tail">;

/** Null when a file has gone meanwhile. The tail may be missing. */
async function openFiles(storage: Storage, names: Names): Promise<OpenedFiles | null> {
  const files: OpenedFiles = { pending: [], tail: null };
  try {
    for (const name of names.pending) {
      if (!isUncovered(name, names)) continue;
      const listed = await openListed(storage, `${PENDING_FOLDER}/${name}`);
      if (listed === null) {
        await closeFiles(files);
        return null;
      }
      files.pending.push(listed);
    }
    files.tail = await openListed(storage, TAIL_FILE);
    return files;
  } catch (error) {
    await closeFiles(files);
    throw error;
  }
}

async function openListed(storage: Storage, path: string): Promise<ListedFile | null> {
  try {
    const file = await storage.open(path, "read");
    return { path, file, sizeBytes: await file.size() };
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

async function closeFiles(files: OpenedFiles | null): Promise<void> {
  if (files === null) return;
  for (const { file } of files.pending) await file.close();
  await files.tail?.file.close();
}

/** Whether a pending file holds events that are in no segment, or may by its name. */
function isUncovered(name: string, { manifest }: Names): boolean {
  if (!name.endsWith(".ndjson")) return false;
  const range = parsePendingName(name);
  const lastSealed = manifest?.segments.at(-1)?.last_event_id;
  return range === null || lastSealed === undefined || range.lastEventId > lastSealed;
}

function started(manifest: Manifest, names: Names, files: OpenedFiles): Inventory {
  return { isStarted: true, manifest, ...files, ...namedLeftovers(names), remnants: [] };
}

/** What a first start leaves that is cut off before it makes the manifest, its last step. */
function unstarted(names: Names, files: OpenedFiles): Inventory {
  const holdsFiles = names.pending.length > 0 || names.segments.length > 0;
  if (holdsFiles || (files.tail?.sizeBytes ?? 0) > 0) {
    throw manifestFailure("is missing from a log that holds events");
  }
  const steps = [PENDING_FOLDER, SEGMENTS_FOLDER, TAIL_FILE];
  return {
    isStarted: false,
    ...files,
    manifest: EMPTY_MANIFEST,
    ...namedLeftovers(names),
    remnants: steps.filter((name) => names.root.includes(name)),
  };
}

/** Leftovers of writers that were cut off: of no meaning, and removed by the next one. */
function namedLeftovers(names: Names): Pick<Inventory, "orphans" | "unlisted"> {
  const listed = new Set(names.manifest?.segments.map(({ path }) => path));
  const unlisted: string[] = [];
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
    if (isSegment && !isWithinPending(name, names.pending)) unlisted.push(path);
  }
  return { orphans: orphans.sort(), unlisted };
}
