/**
 * Makes a segment from a range of a pending file: writes it, syncs it, and reads it back before
 * anything relies on it. What it takes and gives can be sent between threads, so that this can be
 * done beside the thread that serves.
 */
import { assert } from "../../assert.ts";
import { readCommits, type WholeCommit } from "../wal/commit_reader.ts";
import { SEGMENT_TEMPORARY_FILE } from "../storage/file_names.ts";
import type { SegmentFacts } from "../segment/segment_metadata.ts";
import { FULL_SPEED, type Pace } from "./pace.ts";
import { readBack } from "./segment_read_back.ts";
import {
  type SegmentBounds,
  writeSegment,
  type WrittenSegment,
} from "../segment/segment_writer.ts";
import type { Storage } from "../storage/storage.ts";

/** The commits that a segment is made of, as many of them as it holds. */
export interface SegmentTask {
  /** The pending file. */
  path: string;
  /** Where its first commit starts. */
  startBytes: number;
  /** Where the last one ends; there are events before. */
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
   * @throws what the disk says; a part of the file may be there then.
   */
  make(task: SegmentTask): Promise<MadeSegment>;
  /** Told, whenever that changes, how many bytes of commits wait to be sealed. */
  setBacklog(bytes: number): void;
  /** Nothing is under way, nor to be made for now. */
  rest(): void;
  /** Ends what is under way, which is rejected then, and frees what it takes. */
  close(): Promise<void>;
}

export interface MakerSettings {
  bounds?: SegmentBounds;
  /** Told of events that are on their way into a segment, how many more they are. */
  onEvents?: (events: number) => void;
  /** Asked after each commit: whether to end the segment there. */
  isStopped?: () => boolean;
  /** Called at the start of each segment; full speed if absent. */
  startPace?: () => Pace;
}

/** Makes segments on this thread. What is under way is not ended by `close()`. */
export function inPlaceMaker(storage: Storage, settings: MakerSettings = {}): SegmentMaker {
  return {
    make: (task) => makeSegment(storage, task, settings),
    setBacklog() {},
    rest() {},
    close: async () => {},
  };
}

async function makeSegment(
  storage: Storage,
  task: SegmentTask,
  { bounds, onEvents, isStopped, startPace = () => FULL_SPEED }: MakerSettings,
): Promise<MadeSegment> {
  const { path, startBytes, endBytes, previousHead } = task;
  const pace = startPace();
  const pending = await storage.open(path, "read");
  let taken = startBytes;
  const commits = told(readCommits(pending, startBytes, endBytes, path), (next) => {
    taken = next.endBytes;
    onEvents?.(next.commit.batches.reduce((sum, { events }) => sum + events, 0));
  });
  let written: WrittenSegment | null;
  try {
    written = await writeSegment(storage, SEGMENT_TEMPORARY_FILE, commits, {
      previousHead,
      throttle: pace,
      ...(bounds === undefined ? {} : { bounds }),
      ...(isStopped === undefined ? {} : { endsEarly: isStopped }),
    });
  } finally {
    // A segment can be full before the commits end; only then is their memory given back.
    await commits.return();
    await pending.close();
  }
  assert(written !== null, "a segment is made of events");
  await readBack(storage, SEGMENT_TEMPORARY_FILE, written, pace);
  return { facts: written.facts, endBytes: taken };
}

/** Tells of each commit as it comes. */
async function* told(
  commits: AsyncIterable<WholeCommit>,
  onCommit: (commit: WholeCommit) => void,
): AsyncGenerator<WholeCommit, void> {
  for await (const next of commits) {
    onCommit(next);
    yield next;
  }
}
