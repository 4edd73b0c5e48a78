/** Checks the files of segments against the manifest: sizes at a start, footers on first use. */
import { CorruptLogError } from "../storage/errors.ts";
import type { SegmentEntry } from "./manifest.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import type { FilterCache } from "./bloom_filter_cache.ts";
import { EVENT_FACTS } from "./segment_metadata.ts";
import { openSegment, type Segment } from "./segment_reader.ts";
import { isNotFound, type Storage } from "../storage/storage.ts";

/** Files checked concurrently: most of the time is waiting. */
const LOOKED_AT_ONCE = 16;

/**
 * Checks that the files exist and have their sizes, which is all that a start reads of segments.
 * @throws {CorruptLogError} for the first file that is missing or has another size.
 */
export async function checkListedFiles(
  storage: Storage,
  entries: readonly SegmentEntry[],
): Promise<void> {
  for (let start = 0; start < entries.length; start += LOOKED_AT_ONCE) {
    const group = entries.slice(start, start + LOOKED_AT_ONCE);
    const looks = await Promise.allSettled(group.map((entry) => checkListedFile(storage, entry)));
    const failed = looks.find((look) => look.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
}

async function checkListedFile(storage: Storage, entry: SegmentEntry): Promise<void> {
  const file = await opening(entry.path, () => storage.open(entry.path, "read"));
  try {
    const fault = sizeFault(await file.size(), entry);
    if (fault !== null) throw corrupt(entry, fault);
  } finally {
    await file.close();
  }
}

/**
 * Opens a listed segment.
 * @param filterCache where its Bloom filters are kept.
 * @throws {CorruptLogError} the file is missing, is no segment, or is another one.
 */
export async function openListedSegment(
  storage: Storage,
  entry: SegmentEntry,
  filterCache?: FilterCache,
): Promise<Segment> {
  const segment = await opening(entry.path, () => openSegment(storage, entry.path, filterCache));
  const fault = listingFault(segment, entry);
  if (fault === null) return segment;
  await segment.close();
  throw corrupt(entry, fault);
}

async function opening<Opened>(path: string, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open();
  } catch (error) {
    if (isNotFound(error)) {
      throw new CorruptLogError(`${path}: is in the manifest, but missing`, { cause: error });
    }
    if (error instanceof SegmentError) throw new CorruptLogError(error.message, { cause: error });
    throw error;
  }
}

/** How a segment disagrees with the manifest; null when it does not. */
function listingFault(segment: Segment, entry: SegmentEntry): string | null {
  const fault = sizeFault(segment.sizeBytes, entry);
  if (fault !== null) return fault;
  const member = EVENT_FACTS.find((name) => segment.metadata[name] !== entry[name]);
  if (member === undefined) return null;
  return `its footer says ${member} ${segment.metadata[member]}, the manifest ${entry[member]}`;
}

function sizeFault(sizeBytes: number, { bytes }: SegmentEntry): string | null {
  return sizeBytes === bytes ? null : `has ${sizeBytes} bytes, the manifest says ${bytes}`;
}

function corrupt({ path }: SegmentEntry, fault: string): CorruptLogError {
  return new CorruptLogError(`${path}: ${fault}`);
}
