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
  return segment !== null && pendingNames.some((name) => {
    const pending = parsePendingName(name);
    return pending !== null && pending.firstEventId <= segment.firstEventId &&
      segment.lastEventId <= pending.lastEventId;
  });
}

/**
 * Returns the path of a segment after the last one in the manifest whose events are not all in the
 * unsealed files. No crash leaves that, but an older manifest does. Returns undefined without one.
 */
export function findUnlisted(
  paths: readonly string[],
  sealedThrough: string | undefined,
  unsealed: { [Id in keyof IdRange]: string | null },
): string | undefined {
  const { firstEventId, lastEventId } = unsealed;
  return paths.find((path) => {
    const segment = parseSegmentName(path.slice(SEGMENTS_FOLDER.length + 1));
    const isHeld = firstEventId !== null && lastEventId !== null && segment !== null &&
      firstEventId <= segment.firstEventId && segment.lastEventId <= lastEventId;
    return segment !== null && segment.lastEventId > (sealedThrough ?? "") && !isHeld;
  });
}
