/**
 * Makes a segment from a range of a pending file: writes it, syncs it, and reads it back. Tasks and
 * results can be sent between threads.
 */
import { assert } from "../../assert.ts";
import type { SegmentFacts } from "../segment/segment_metadata.ts";
import { type SegmentBounds, writeSegment } from "../segment/segment_writer.ts";
import { SEGMENT_TEMPORARY_FILE } from "../storage/file_names.ts";
import type { Storage } from "../storage/storage.ts";
import { readCommits, type WholeCommit } from "../wal/commit_reader.ts";
import { readBack } from "./segment_read_back.ts";

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
}

export interface MadeSegment {
  facts: SegmentFacts;
  /** Where its last commit ends in the pending file. */
  endBytes: number;
}

export interface SegmentMaker {
  /**
   * Makes the next segment, under the temporary name, which must be free. One call at a time.
   * @throws {CorruptLogError} the pending file is not what was committed.
   * @throws an error of the disk; part of the file may remain.
   */
  make(task: SegmentTask): Promise<MadeSegment>;
  /** Receives the bytes of commits that wait to be sealed, whenever they change. */
  setBacklog(bytes: number): void;
  /** Rejects what is under way, and frees all resources. */
  close(): Promise<void>;
}

export interface MakerSettings {
  bounds?: SegmentBounds;
  /** Receives the events of each commit before it is sealed; may throw to stop. */
  onEvents?: (events: number) => void;
  /** Called after each row group that is written or read back; unthrottled if absent. */
  throttle?: () => void;
}

/** Makes segments on this thread. `close()` does not end what is under way. */
export function inPlaceMaker(storage: Storage, settings: MakerSettings = {}): SegmentMaker {
  return {
    make: (task) => makeSegment(storage, task, settings),
    setBacklog() {},
    close: async () => {},
  };
}

async function makeSegment(
  storage: Storage,
  task: SegmentTask,
  { bounds, onEvents, throttle }: MakerSettings,
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
