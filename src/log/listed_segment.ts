/**
 * Opens a segment that the manifest lists, and holds its footer to what the manifest says of it.
 */
import type { BloomCache } from "./bloom_cache.ts";
import { CorruptLogError } from "./log_error.ts";
import type { SegmentEntry } from "./manifest.ts";
import { SegmentError } from "./segment_error.ts";
import type { SegmentMetadata } from "./segment_metadata.ts";
import { openSegment, type Segment } from "./segment_reader.ts";
import { isNotFound, type Storage } from "./storage.ts";

const SHARED_MEMBERS = [
  "events",
  "batches",
  "first_event_id",
  "last_event_id",
  "previous_head",
  "head",
] as const satisfies readonly (keyof SegmentMetadata & keyof SegmentEntry)[];

/** @throws {CorruptLogError} the file is missing, is no segment, or is another one. */
export async function openListedSegment(
  storage: Storage,
  entry: SegmentEntry,
  blooms?: BloomCache,
): Promise<Segment> {
  const segment = await open(storage, entry.path, blooms);
  const fault = listingFault(segment, entry);
  if (fault === null) return segment;
  await segment.close();
  throw new CorruptLogError(`${entry.path}: ${fault}`);
}

async function open(
  storage: Storage,
  path: string,
  blooms: BloomCache | undefined,
): Promise<Segment> {
  try {
    return await openSegment(storage, path, blooms);
  } catch (error) {
    if (isNotFound(error)) {
      throw new CorruptLogError(`${path}: is in the manifest, but missing`, { cause: error });
    }
    if (error instanceof SegmentError) throw new CorruptLogError(error.message, { cause: error });
    throw error;
  }
}

/** How the footer of a segment disagrees with the manifest; null when it does not. */
function listingFault(segment: Segment, entry: SegmentEntry): string | null {
  if (segment.sizeBytes !== entry.bytes) {
    return `has ${segment.sizeBytes} bytes, the manifest says ${entry.bytes}`;
  }
  const member = SHARED_MEMBERS.find((name) => segment.metadata[name] !== entry[name]);
  if (member === undefined) return null;
  return `its footer says ${member} ${segment.metadata[member]}, the manifest ${entry[member]}`;
}
