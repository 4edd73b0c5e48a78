/** One coherent view of the log: what was durable at a moment, whatever is appended later. */
import type { Buffer } from "node:buffer";
import type { EventFilter } from "../line/stored_line.ts";
import type { ScanMemory } from "./scan_memory.ts";
import type { StreamCounts, StreamSource } from "./stream_counts.ts";

/** Which events a reader wants of a file. What it gets may hold others too. */
export interface LinesWanted {
  /** Exclusive lower bound. */
  after: string | undefined;
  filter: EventFilter;
  /** Size of the first read, where a read can have any size. */
  firstReadBytes: number;
  /** What lines are read into. */
  memory: ScanMemory;
}

/** The lines of a file from oldest to newest. */
export interface LineSource {
  /**
   * The next whole lines, headers among them, the last one with its LF; null at the end. The caller
   * may change them; they are valid until the next call.
   */
  next(): Promise<Buffer | null>;
}

/** What a segment tells of its streams without a line being read. */
export interface FileStreams extends StreamSource {
  /** Those of the events up to one; null when that is not in it. */
  countThrough(eventId: string): Promise<StreamCounts | null>;
}

/** A file of a snapshot: a segment, a pending file, or the tail up to the snapshot's end. */
export interface LogFile {
  readonly path: string;
  readonly lastEventId: string;
  /** Null where only the lines tell. */
  readonly streams: FileStreams | null;
  lines(wanted: LinesWanted): LineSource;
}

export interface LogSnapshot {
  /** Last durable event; null for an empty log. */
  readonly frontier: string | null;
  /** From oldest to newest; each holds at least one event. */
  readonly files: readonly LogFile[];
}
