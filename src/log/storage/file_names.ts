/**
 * All names of the files in a log folder; docs/format.md describes what is in them. Paths are
 * relative to the log folder. Nothing else in the tree spells one.
 */

/** Target of the writer's flock; never deleted. */
export const LOCK_FILE = ".lock";
export const MANIFEST_FILE = "manifest.json";
/** A manifest being written; of no meaning until it is renamed. */
export const MANIFEST_TEMPORARY_FILE = "manifest.json.tmp";
export const TAIL_FILE = "tail.ndjson";
/** A tail being made, empty; of no meaning until it is renamed. */
export const TAIL_TEMPORARY_FILE = "tail.ndjson.tmp";
export const PENDING_FOLDER = "pending";
export const SEGMENTS_FOLDER = "segments";

const EVENT_ID = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
const PENDING_NAME = new RegExp(`^(${EVENT_ID})_(${EVENT_ID})\\.ndjson$`);

/** Path of a rotated tail that holds the events `first` to `last`. */
export function pendingPath(firstEventId: string, lastEventId: string): string {
  return `${PENDING_FOLDER}/${firstEventId}_${lastEventId}.ndjson`;
}

/** The events that the name of a file tells. */
export interface IdRange {
  firstEventId: string;
  lastEventId: string;
}

/** The id range that a name in the pending folder tells; null for any other name. */
export function parsePendingName(name: string): IdRange | null {
  const match = PENDING_NAME.exec(name);
  return match === null ? null : { firstEventId: match[1]!, lastEventId: match[2]! };
}

/** Path of a segment, by what is in it. */
export function segmentPath(
  segment: { first_event_id: string; last_event_id: string; sha256: string },
): string {
  const { first_event_id, last_event_id, sha256 } = segment;
  return `${SEGMENTS_FOLDER}/${first_event_id}_${last_event_id}_${sha256}.parquet`;
}

/** A segment being written; of no meaning until it is renamed. */
export const SEGMENT_TEMPORARY_FILE = `${SEGMENTS_FOLDER}/new.parquet.tmp`;

const SEGMENT_NAME = new RegExp(`^(${EVENT_ID})_(${EVENT_ID})_[0-9a-f]{64}\\.parquet$`);

/** The id range that a name in the segments folder tells; null for any other name. */
export function parseSegmentName(name: string): IdRange | null {
  const match = SEGMENT_NAME.exec(name);
  return match === null ? null : { firstEventId: match[1]!, lastEventId: match[2]! };
}

/**
 * Whether the events of a segment, by its name, lie in one of these pending files: a sealing that
 * was cut off, or is under way, made it from that.
 */
export function isWithinPending(segmentName: string, pendingNames: readonly string[]): boolean {
  const segment = parseSegmentName(segmentName);
  return segment !== null && pendingNames.some((name) => {
    const pending = parsePendingName(name);
    return pending !== null && pending.firstEventId <= segment.firstEventId &&
      segment.lastEventId <= pending.lastEventId;
  });
}
