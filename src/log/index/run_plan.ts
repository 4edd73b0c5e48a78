/**
 * Which run indexes a log has, and which to merge next. A run covers RUN_SEGMENTS[level]
 * consecutive segments and starts at a multiple of that number in the manifest. So each segment is
 * in one run of a level. Once all merges are done, a log has at most seven indexes each of 1, 8 and
 * 64 segments, and one of each larger size. The name of an index commits to the segments that it
 * covers: one of an older copy of the log, or of another log, has another name.
 */
import { createHash } from "node:crypto";
import { indexPath } from "../storage/file_names.ts";

/**
 * By level. Every segment is merged once a level, so small runs grow eightfold. The filters of
 * large runs are coarse, and a lookup reads a page of each run whose filter it passes, so they
 * double. Ordinals have 16 bits.
 */
export const RUN_SEGMENTS: readonly number[] = [
  ...[1, 8, 64],
  ...[512, 1024, 2048, 4096, 8192, 16384, 32768],
];

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
  const count = RUN_SEGMENTS[level]!;
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
    for (let level = RUN_SEGMENTS.length - 1; level > 0 && first >= end; level--) {
      const count = RUN_SEGMENTS[level]!;
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
 * Yields the neighbors that can be merged into a run of the next level, lowest level first.
 * @param parts the indexes in use, of level 0 for a segment's own.
 */
export function* mergeable<Part extends Pick<Run, "level" | "first">>(
  parts: readonly Part[],
): Generator<readonly Part[], void> {
  for (let level = 0; level + 1 < RUN_SEGMENTS.length; level++) {
    const runSegments = RUN_SEGMENTS[level + 1]!;
    const fanout = runSegments / RUN_SEGMENTS[level]!;
    for (let place = 0; place + fanout <= parts.length; place++) {
      const group = parts.slice(place, place + fanout);
      const isAligned = group[0]!.first % runSegments === 0;
      if (isAligned && group.every((part) => part.level === level)) yield group;
    }
  }
}
