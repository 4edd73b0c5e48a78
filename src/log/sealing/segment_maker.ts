/**
 * Builds a segment from a range of a pending file: writes it, syncs it, and verifies it by reading
 * it back. Tasks and results can be sent between threads.
 */
import { crc32 } from "node:zlib";
import { CorruptLogError, SegmentError } from "../storage/errors.ts";
import { LF } from "../line/line_bytes.ts";
import { lineEventId } from "../line/stored_line.ts";
import type { SegmentFacts } from "../segment/segment_metadata.ts";
import { openChecked } from "../segment/segment_reader.ts";
import {
  type SegmentBounds,
  writeSegment,
  type WrittenSegment,
} from "../segment/segment_writer.ts";
import type { Storage } from "../storage/storage.ts";
import { readCommits, type WholeCommit } from "../wal/commit_reader.ts";
import { sumOf } from "../../sum.ts";

/** The commits available for a segment. The segment ends once it is full. */
export interface SegmentTask {
  /** The pending file. */
  path: string;
  /** Start of the first commit. */
  startBytes: number;
  /** End of the last commit; the range has at least one event. */
  endBytes: number;
  /** Chain head before the first event, 64 lowercase hex digits. */
  previousHead: string;
  /** The temporary name of the segment, which must be free. */
  into: string;
  /** Holds a double, the backlog, which determines the throttle. */
  backlog: SharedArrayBuffer;
}

export interface MadeSegment {
  facts: SegmentFacts;
  /** End of the segment's last commit in the pending file. */
  endBytes: number;
}

/**
 * Builds the next segment under its temporary name.
 * @throws {CorruptLogError} if the pending file is damaged.
 * @throws {Error} on an I/O error; a partial file may remain.
 */
export type MakeSegment = (task: SegmentTask) => Promise<MadeSegment>;

export interface MakerSettings {
  bounds?: SegmentBounds;
  /** Receives the event count of each commit before it is sealed; may throw to stop. */
  onEvents?: (events: number) => void;
  /** Called after each row group is written or read back; unthrottled if absent. */
  throttle?: () => void;
}

export async function makeSegment(
  storage: Storage,
  task: SegmentTask,
  { bounds, onEvents, throttle }: MakerSettings = {},
): Promise<MadeSegment> {
  const { path, startBytes, endBytes, previousHead, into } = task;
  const pending = await storage.open(path, "read");
  const reader = readCommits(pending, startBytes, endBytes);
  let taken = startBytes;
  const commits = async function* (): AsyncGenerator<WholeCommit, void> {
    let next = await reader.next();
    for (; next.done !== true; next = await reader.next()) {
      const { commit: { batches } } = next.value;
      taken = next.value.endBytes;
      if (batches.length === 0) continue;
      onEvents?.(sumOf(batches, ({ events }) => events));
      yield next.value;
    }
    if (next.value === null) return;
    throw new CorruptLogError(`${path}: corrupt at byte ${taken}: ${next.value}`);
  };
  try {
    const options = { previousHead, bounds, throttle };
    const written = await writeSegment(storage, into, commits(), options);
    await readBack(storage, into, written, throttle);
    return { facts: written.facts, endBytes: taken };
  } finally {
    await pending.close();
  }
}

/**
 * Reads a new segment back from disk, and compares its lines with those that were sealed.
 * @param throttle called after each row group; may block.
 * @throws {SegmentError} if the file or its lines differ from what was written.
 */
export async function readBack(
  storage: Storage,
  path: string,
  { facts, linesCrc }: WrittenSegment,
  throttle: () => void = () => {},
): Promise<void> {
  const segment = await openChecked(storage, { path, ...facts });
  try {
    let crc = 0;
    let isSame = true;
    for (const [number, rowGroup] of (await segment.rowGroups()).entries()) {
      const lines = await segment.readLines(number);
      const lastLine = lines.lastIndexOf(LF, lines.length - 2) + 1;
      isSame &&= lineEventId(lines, 0) === rowGroup.firstEventId &&
        lineEventId(lines, lastLine) === rowGroup.lastEventId;
      crc = crc32(lines, crc);
      throttle();
    }
    if (!isSame || crc !== linesCrc) {
      throw new SegmentError(`${path}: lines read back differ from the lines sealed`);
    }
  } finally {
    await segment.close();
  }
}
