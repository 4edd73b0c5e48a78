/**
 * Makes a segment from a range of a pending file: writes it, syncs it, and reads it back. Tasks and
 * results can be sent between threads.
 */
import { createHash } from "node:crypto";
import { assert } from "../../assert.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import { openChecked, SegmentRowsCheck } from "../segment/segment_check.ts";
import type { SegmentFacts } from "../segment/segment_metadata.ts";
import {
  type SegmentBounds,
  writeSegment,
  type WrittenSegment,
} from "../segment/segment_writer.ts";
import { SEGMENT_TEMPORARY_FILE } from "../storage/file_names.ts";
import type { Storage } from "../storage/storage.ts";
import { readCommits, type WholeCommit } from "../wal/commit_reader.ts";

/** The commits for a segment; it takes as many as it holds. */
export interface SegmentTask {
  /** The pending file. */
  path: string;
  /** Where its first commit starts. */
  startBytes: number;
  /** Where the last one ends; the range holds events. */
  endBytes: number;
  /** Chain head before the first event, 64 lowercase hex digits. */
  previousHead: string;
  /** Bytes of commits that are not sealed, by which the thread is throttled. */
  backlogBytes: number;
}

export interface MadeSegment {
  facts: SegmentFacts;
  /** Where its last commit ends in the pending file. */
  endBytes: number;
}

/**
 * Makes the next segment, under the temporary name, which must be free. One call at a time.
 * @throws {CorruptLogError} the pending file is not what was committed.
 * @throws an error of the disk; part of the file may remain.
 */
export type MakeSegment = (task: SegmentTask) => Promise<MadeSegment>;

export interface MakerSettings {
  bounds?: SegmentBounds;
  /** Receives the events of each commit before it is sealed; may throw to stop. */
  onEvents?: (events: number) => void;
  /** Called after each row group that is written or read back; unthrottled if absent. */
  throttle?: () => void;
}

/** See `MakeSegment`. */
export async function makeSegment(
  storage: Storage,
  task: SegmentTask,
  { bounds, onEvents, throttle }: MakerSettings = {},
): Promise<MadeSegment> {
  const { path, startBytes, endBytes, previousHead } = task;
  const pending = await storage.open(path, "read");
  let taken = startBytes;
  const commits = async function* (): AsyncGenerator<WholeCommit, void> {
    for await (const next of readCommits(pending, startBytes, endBytes, path)) {
      onEvents?.(next.commit.batches.reduce((sum, { events }) => sum + events, 0));
      taken = next.endBytes;
      yield next;
    }
  };
  try {
    const written = await writeSegment(storage, SEGMENT_TEMPORARY_FILE, commits(), {
      previousHead,
      ...(throttle === undefined ? {} : { throttle }),
      ...(bounds === undefined ? {} : { bounds }),
    });
    assert(written !== null, "a segment is made of events");
    await readBack(storage, SEGMENT_TEMPORARY_FILE, written, throttle);
    return { facts: written.facts, endBytes: taken };
  } finally {
    await pending.close();
  }
}

/**
 * Reads a new segment back from the disk: its lines, indexes and statistics must be right.
 * @param throttle called after each row group; may wait.
 * @throws {SegmentError} the file is not what was written, or holds other lines than the tail.
 */
export async function readBack(
  storage: Storage,
  path: string,
  { facts, linesSha256 }: WrittenSegment,
  throttle: () => void = () => {},
): Promise<void> {
  const segment = await openChecked(storage, { path, ...facts });
  try {
    const check = new SegmentRowsCheck(segment, { full: true });
    const hash = createHash("sha256");
    for await (const { lines } of check.rowGroups()) {
      hash.update(lines);
      throttle();
    }
    await check.finish();
    if (hash.digest("hex") !== linesSha256) {
      throw new SegmentError(`${path}: reads back as other lines than were sealed`);
    }
  } finally {
    await segment.close();
  }
}
