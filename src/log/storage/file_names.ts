/** All file names in a log directory (docs/format.md). Paths are relative to that directory. */

/** The file that the writer locks with flock(2); never deleted. */
export const LOCK_FILE = ".lock";
export const MANIFEST_FILE = "manifest.json";
/** A manifest being written; ignored until it is renamed. */
export const MANIFEST_TEMPORARY_FILE = "manifest.json.tmp";
export const TAIL_FILE = "tail.ndjson";
/** A new, empty tail; ignored until it is renamed. */
export const TAIL_TEMPORARY_FILE = "tail.ndjson.tmp";
export const PENDING_FOLDER = "pending";
export const SEGMENTS_FOLDER = "segments";
export const INDEX_FOLDER = "index";

const EVENT_ID = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
const PENDING_NAME = new RegExp(`^(${EVENT_ID})_(${EVENT_ID})\\.ndjson$`);
const INDEX_NAME = new RegExp(`^\\d_${EVENT_ID}_${EVENT_ID}_[0-9a-f]{64}\\.index$`);
const SEGMENT_NAME = new RegExp(`^(${EVENT_ID})_(${EVENT_ID})_[0-9a-f]{64}\\.parquet$`);

/** Returns the path for a rotated tail. */
export function pendingPath(firstEventId: string, lastEventId: string): string {
  return `${PENDING_FOLDER}/${firstEventId}_${lastEventId}.ndjson`;
}

/** Returns the name of a file, without its directory. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The first and last event id in a file name. */
export interface IdRange {
  firstEventId: string;
  lastEventId: string;
}

/** Returns the id range in a pending file's name; null for any other name. */
export function parsePendingName(name: string): IdRange | null {
  return parseName(PENDING_NAME, name);
}

export function segmentPath(
  segment: { first_event_id: string; last_event_id: string; sha256: string },
): string {
  const { first_event_id, last_event_id, sha256 } = segment;
  return `${SEGMENTS_FOLDER}/${first_event_id}_${last_event_id}_${sha256}.parquet`;
}

/** A segment being written; ignored until it is renamed. */
export const SEGMENT_TEMPORARY_FILE = `${SEGMENTS_FOLDER}/new.parquet.tmp`;

/** Returns the path for the index of a run. @param coverage identifies its segments. */
export function indexPath(
  run: { level: number; firstEventId: string; lastEventId: string; coverage: string },
): string {
  const { level, firstEventId, lastEventId, coverage } = run;
  return `${INDEX_FOLDER}/${level}_${firstEventId}_${lastEventId}_${coverage}.index`;
}

/** An index being written; ignored until it is renamed. */
export const INDEX_TEMPORARY_FILE = `${INDEX_FOLDER}/new.index.tmp`;

/** Whether a name in the index folder is one that the service makes. */
export function isIndexName(name: string): boolean {
  return INDEX_NAME.test(name) || `${INDEX_FOLDER}/${name}` === INDEX_TEMPORARY_FILE;
}

/** Returns the id range in a segment's name; null for any other name. */
export function parseSegmentName(name: string): IdRange | null {
  return parseName(SEGMENT_NAME, name);
}

function parseName(pattern: RegExp, name: string): IdRange | null {
  const match = pattern.exec(name);
  return match === null ? null : { firstEventId: match[1]!, lastEventId: match[2]! };
}

/** Whether the id range in a segment's name lies within that of one of the pending files. */
export function isWithinPending(segmentName: string, pendingNames: readonly string[]): boolean {
  const segment = parseSegmentName(segmentName);
  const ranges = pendingNames.map(parsePendingName).filter((range) => range !== null);
  return segment !== null && ranges.some((range) => isWithin(segment, range));
}

function isWithin(inner: IdRange, { firstEventId, lastEventId }: IdRange): boolean {
  return firstEventId <= inner.firstEventId && inner.lastEventId <= lastEventId;
}

/**
 * Whether a segment, according to its name, holds events after the last one in the manifest that
 * none of the unsealed files holds. No crash leaves that, but an older manifest does.
 * @param sealedThrough the last event in the manifest, if there is one.
 * @param unsealed the pending files and the tail; one without events has null ids.
 */
export function isUnlistedSegment(
  name: string,
  sealedThrough: string | undefined,
  unsealed: readonly { [Id in keyof IdRange]: string | null }[],
): boolean {
  const segment = parseSegmentName(name);
  return segment !== null && segment.lastEventId > (sealedThrough ?? "") &&
    !unsealed.some(({ firstEventId, lastEventId }) =>
      firstEventId !== null && lastEventId !== null &&
      isWithin(segment, { firstEventId, lastEventId })
    );
}
