/**
 * Takes a consistent inventory of a log's files. Since a writer may be active, a reader's listing
 * must be the same before and after the files are opened; their descriptors then stay valid even if
 * the files are renamed.
 */
import {
  type IdRange,
  INDEX_FOLDER,
  isIndexName,
  isSegmentWithin,
  MANIFEST_FILE,
  parsePendingPath,
  parseSegmentPath,
  PENDING_FOLDER,
  SEGMENTS_FOLDER,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
  TEMPORARY_FILES,
} from "../storage/file_names.ts";
import { chooseRuns, type Run } from "../index/run_plan.ts";
import { CorruptLogError, VerifyFailure } from "../storage/errors.ts";
import { EMPTY_MANIFEST, type Manifest, readManifest } from "../segment/manifest.ts";
import { usedBytes } from "../wal/reserved_space.ts";
import { isNotFound, type Storage, type StorageFile } from "../storage/storage.ts";

/** Maximum attempts to get a stable listing while a writer may move files. */
const LISTING_ATTEMPTS_MAX = 100;

/** A writer refuses a log that only newer programs may write. */
export type Access = "read" | "write";

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
  /** Whether the tail is missing for another reason than a rotation that was interrupted. */
  lacksTail: boolean;
  /** Files that are not part of the log, sorted. */
  orphans: string[];
  /** The runs whose indexes are in use. */
  runs: readonly Run[];
  /** Leftovers from an interrupted first startup. */
  remnants: string[];
}

/**
 * Takes the inventory of an existing log directory.
 * @param access a writer, which has the lock, opens the tail for writing.
 * @throws {VerifyFailure} `manifest_invalid`.
 * @throws {UnsupportedFormatError} if a newer program wrote the log.
 */
export async function takeInventory(
  storage: Storage,
  access: Access = "read",
): Promise<Inventory> {
  for (let attempt = 0; attempt < LISTING_ATTEMPTS_MAX; attempt++) {
    const listing = await readListing(storage, access);
    const opened: ListedFile[] = [];
    let inventory: Inventory | null = null;
    try {
      const pending = listing.pending.filter((path) => isUncovered(path, listing));
      for (const path of [...pending, TAIL_FILE]) {
        // If a pending file has vanished, the second listing will show it.
        const listed = await openListed(storage, path, path === TAIL_FILE ? access : "read");
        if (listed !== null) opened.push(listed);
      }
      const isStable = access === "write" ||
        isSame(listing, await readListing(storage, access));
      if (isStable) inventory = inventoryOf(listing, opened);
    } finally {
      if (inventory === null) await closeFiles({ pending: opened, tail: null });
    }
    if (inventory !== null) return inventory;
  }
  throw new Error("the log changed while it was being listed; run verify again");
}

export async function closeFiles({ pending, tail }: Pick<Inventory, "pending" | "tail">) {
  await Promise.allSettled([...pending, ...tail ? [tail] : []].map(({ file }) => file.close()));
}

/** Paths by directory. */
interface Listing {
  manifest: Manifest | null;
  root: string[];
  pending: string[];
  segments: string[];
  /** Paths that an index file can have. */
  indexes: string[];
}

async function readListing(storage: Storage, access: Access): Promise<Listing> {
  const list = async (folder: string, isListed = (_name: string) => true) =>
    (await storage.list(folder) ?? []).filter(isListed).map((name) => `${folder}/${name}`);
  const manifest = await readManifest(storage, access).catch((cause) => {
    if (!(cause instanceof CorruptLogError)) throw cause;
    throw new VerifyFailure("manifest_invalid", cause.message, { cause });
  });
  const pending = await list(PENDING_FOLDER);
  // Listed after the pending files, so that a running rotation shows its new tail or that file.
  const root = await storage.list(".") ?? [];
  const segments = await list(SEGMENTS_FOLDER);
  return { manifest, root, pending, segments, indexes: await list(INDEX_FOLDER, isIndexName) };
}

/** Whether no file has moved. Comparing the manifests also covers the segments. */
function isSame(before: Listing, after: Listing): boolean {
  const moves = ({ manifest, pending }: Listing) => JSON.stringify([manifest, pending]);
  return moves(before) === moves(after);
}

/** Opens a file; null if there is none. */
export async function openListed(
  storage: Storage,
  path: string,
  access: Access,
): Promise<ListedFile | null> {
  let file: StorageFile | null = null;
  try {
    file = await storage.open(path, access);
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

/** Whether a pending file may contain unsealed events: only its own seal ends with its last one. */
function isUncovered(path: string, { manifest }: Listing): boolean {
  if (!path.endsWith(".ndjson")) return false;
  const lastEventId = parsePendingPath(path)?.lastEventId;
  return !manifest?.segments.some(({ last_event_id }) => last_event_id === lastEventId);
}

/** Returns the id of the last sealed event. If there is none, returns "", the lowest string. */
function sealedThrough(manifest: Manifest | null): string {
  return manifest?.segments.at(-1)?.last_event_id ?? "";
}

function inventoryOf(listing: Listing, opened: readonly ListedFile[]): Inventory {
  const { root, pending, segments, indexes } = listing;
  const isStarted = listing.manifest !== null;
  const tail = opened.find(({ path }) => path === TAIL_FILE) ?? null;
  const isEmpty = pending.length + segments.length + (tail?.sizeBytes ?? 0) === 0;
  if (!isStarted && !isEmpty) {
    const message = `${MANIFEST_FILE}: is missing from a log that holds events`;
    throw new VerifyFailure("manifest_invalid", message);
  }
  const manifest = listing.manifest ?? EMPTY_MANIFEST;
  const listed = new Set(manifest.segments.map(({ path }) => path));
  const unused = new Set(indexes);
  const runs = chooseRuns(manifest.segments, unused);
  for (const { path } of runs) unused.delete(path);
  // Left by interrupted writers. The next one keeps segments that no pending file covers.
  const orphans = [
    ...root.filter((name) => TEMPORARY_FILES.includes(name)),
    ...pending.filter((path) => parsePendingPath(path) && !isUncovered(path, listing)),
    ...segments.filter((path) =>
      TEMPORARY_FILES.includes(path) || parseSegmentPath(path) && !listed.has(path)
    ),
    ...unused,
  ];
  const uncovered = opened.filter((file) => file !== tail);
  const isRotating = uncovered.length > 0 && orphans.includes(TAIL_TEMPORARY_FILE);
  // The first startup writes the manifest last.
  const steps = isStarted ? [] : [PENDING_FOLDER, SEGMENTS_FOLDER, TAIL_FILE];
  return {
    isStarted,
    manifest,
    pending: uncovered,
    tail,
    lacksTail: isStarted && tail === null && !isRotating,
    orphans: orphans.sort(),
    runs,
    remnants: steps.filter((name) => root.includes(name)),
  };
}

/** Whether a segment is from an interrupted seal: its events are in one pending file. */
export function isSealedAgain(path: string, { pending }: Pick<Inventory, "pending">): boolean {
  return isSegmentWithin(path, pending.flatMap(({ path }) => parsePendingPath(path) ?? []));
}

/**
 * Returns a failure if a segment after the last one in the manifest has events that are not in the
 * unsealed files. No crash leaves that, but an older manifest does.
 */
export function findUnlisted(
  { manifest, orphans, pending }: Pick<Inventory, "manifest" | "orphans" | "pending">,
  { firstEventId, lastEventId }: { [Id in keyof IdRange]: string | null },
): VerifyFailure | null {
  const unsealed = firstEventId && lastEventId ? [{ firstEventId, lastEventId }] : [];
  const next = orphans.find((path) =>
    (parseSegmentPath(path)?.lastEventId ?? "") > sealedThrough(manifest) &&
    !isSegmentWithin(path, unsealed) && !isSealedAgain(path, { pending })
  );
  if (next === undefined) return null;
  const message = `${MANIFEST_FILE}: does not list the next segment, ${next}`;
  return new VerifyFailure("manifest_invalid", message);
}
