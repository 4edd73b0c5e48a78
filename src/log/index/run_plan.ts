/**
 * Which run indexes a log has, and which to merge next. A run of level n covers 8^n consecutive
 * segments and starts at a multiple of that number in the manifest. So each segment is in one run
 * of a level, and a log of 8^n segments has at most 7n runs. The name of an index commits to the
 * segments that it covers: one of an older copy of the log, or of another log, has another name.
 */
import { createHash } from "node:crypto";
import { indexPath } from "../storage/file_names.ts";

/** Every segment is merged once a level. With 16, a log of 4,000 segments has 35 runs, not 21. */
const RUN_FANOUT = 8;
/** A run of 32,768 segments. Ordinals have 16 bits. */
const LEVELS_MAX = 5;

/** The members of a manifest entry that a run depends on. */
export interface RunSegment {
  sha256: string;
  first_event_id: string;
  last_event_id: string;
}

export interface Run {
  level: number;
  /** Number of its first segment. */
  first: number;
  count: number;
  /** SHA-256 of the SHA-256s of its segments, 64 lowercase hex digits. */
  coverage: string;
  path: string;
}

export function runOf(segments: readonly RunSegment[], level: number, first: number): Run {
  const count = RUN_FANOUT ** level;
  const hash = createHash("sha256");
  for (let number = first; number < first + count; number++) hash.update(segments[number]!.sha256);
  const coverage = hash.digest("hex");
  const firstEventId = segments[first]!.first_event_id;
  const lastEventId = segments[first + count - 1]!.last_event_id;
  return {
    level,
    first,
    count,
    coverage,
    path: indexPath({ level, firstEventId, lastEventId, coverage }),
  };
}

/** Returns the runs with an index among `paths` that no larger one covers, in order. */
export function chooseRuns(segments: readonly RunSegment[], paths: ReadonlySet<string>): Run[] {
  const runs: Run[] = [];
  let end = 0;
  for (let first = 0; first < segments.length && paths.size > 0; first++) {
    for (let level = LEVELS_MAX; level > 0 && first >= end; level--) {
      const count = RUN_FANOUT ** level;
      if (first % count !== 0 || first + count > segments.length) continue;
      const run = runOf(segments, level, first);
      if (!paths.has(run.path)) continue;
      runs.push(run);
      end = first + count;
    }
  }
  return runs;
}

/**
 * Yields each eight neighbors that can be merged, lowest level first.
 * @param parts the indexes in use, of level 0 for a segment's own.
 */
export function* mergeable<Part extends Pick<Run, "level" | "first">>(
  parts: readonly Part[],
): Generator<readonly Part[], void> {
  for (let level = 0; level < LEVELS_MAX; level++) {
    for (let place = 0; place + RUN_FANOUT <= parts.length; place++) {
      const group = parts.slice(place, place + RUN_FANOUT);
      const isAligned = group[0]!.first % RUN_FANOUT ** (level + 1) === 0;
      if (isAligned && group.every((part) => part.level === level)) yield group;
    }
  }
}
