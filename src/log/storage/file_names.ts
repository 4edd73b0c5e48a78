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
const PENDING_PATH = new RegExp(`^${PENDING_FOLDER}/(${EVENT_ID})_(${EVENT_ID})\\.ndjson$`);
const INDEX_NAME = new RegExp(`^\\d_${EVENT_ID}_${EVENT_ID}_[0-9a-f]{64}\\.index$`);
const SEGMENT_PATH = new RegExp(
  `^${SEGMENTS_FOLDER}/(${EVENT_ID})_(${EVENT_ID})_[0-9a-f]{64}\\.parquet$`,
);

/** Returns the path for a rotated tail. */
export function pendingPath(firstEventId: string, lastEventId: string): string {
  return `${PENDING_FOLDER}/${firstEventId}_${lastEventId}.ndjson`;
}

/** The first and last event id in a path. */
export interface IdRange {
  firstEventId: string;
  lastEventId: string;
}

/** Returns the id range in a pending file's path; null for any other path. */
export function parsePendingPath(path: string): IdRange | null {
  return parsePath(PENDING_PATH, path);
}

export function segmentPath(
  segment: { first_event_id: string; last_event_id: string; sha256: string },
): string {
  const { first_event_id, last_event_id, sha256 } = segment;
  return `${SEGMENTS_FOLDER}/${first_event_id}_${last_event_id}_${sha256}.parquet`;
}

/** Segments being written of two pending files at most; ignored until they are renamed. */
export const SEGMENT_TEMPORARY_FILES = [
  `${SEGMENTS_FOLDER}/new.parquet.tmp`,
  `${SEGMENTS_FOLDER}/next.parquet.tmp`,
] as const;

/** Returns the path for the index of a run. @param coverage identifies its segments. */
export function indexPath(
  run: { level: number; firstEventId: string; lastEventId: string; coverage: string },
): string {
  const { level, firstEventId, lastEventId, coverage } = run;
  return `${INDEX_FOLDER}/${level}_${firstEventId}_${lastEventId}_${coverage}.index`;
}

/** An index being written; ignored until it is renamed. */
export const INDEX_TEMPORARY_FILE = `${INDEX_FOLDER}/new.index.tmp`;

/** Everything that is ignored until it is renamed, and removed by the next start. */
export const TEMPORARY_FILES: readonly string[] = [
  MANIFEST_TEMPORARY_FILE,
  TAIL_TEMPORARY_FILE,
  ...SEGMENT_TEMPORARY_FILES,
  INDEX_TEMPORARY_FILE,
];

/** Whether a name in the index folder is one that the service makes. */
export function isIndexName(name: string): boolean {
  return INDEX_NAME.test(name) || `${INDEX_FOLDER}/${name}` === INDEX_TEMPORARY_FILE;
}

/** Returns the id range in a segment's path; null for any other path. */
export function parseSegmentPath(path: string): IdRange | null {
  return parsePath(SEGMENT_PATH, path);
}

function parsePath(pattern: RegExp, path: string): IdRange | null {
  const match = pattern.exec(path);
  return match === null ? null : { firstEventId: match[1]!, lastEventId: match[2]! };
}

/** Whether a path is that of a segment whose id range lies within one of `ranges`. */
export function isSegmentWithin(path: string, ranges: readonly IdRange[]): boolean {
  const segment = parseSegmentPath(path);
  return segment !== null &&
    ranges.some(({ firstEventId, lastEventId }) =>
      firstEventId <= segment.firstEventId && segment.lastEventId <= lastEventId
    );
}
