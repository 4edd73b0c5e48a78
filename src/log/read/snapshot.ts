/** A coherent view of the log: what was durable at one moment. */
import type { Buffer } from "node:buffer";
import type { EventFilter } from "../line/stored_line.ts";
import type { ScanMemory } from "./scan_memory.ts";
import type { StreamCounts, StreamSource } from "./stream_counts.ts";

/** The events a reader wants of a file; it may get others too. */
export interface LinesWanted {
  /** Exclusive lower bound. */
  after: string | undefined;
  filter: EventFilter;
  /** Size of the first read, where a read can have any size. */
  firstReadBytes: number;
  /** Lines are read into it. */
  memory: ScanMemory;
}

/** The lines of a file from oldest to newest. */
export interface LineSource {
  /**
   * The next whole lines, commit headers among them; null at the end. They are valid until the next
   * call, and the caller may change them.
   */
  next(): Promise<Buffer | null>;
}

/** The streams of a segment, by its index. */
export interface FileStreams extends StreamSource {
  /** Counts the events up to one; null when the segment does not hold it. */
  countThrough(eventId: string): Promise<StreamCounts | null>;
}

/** A segment, a pending file, or the tail up to the snapshot's end. */
export interface LogFile {
  readonly path: string;
  readonly lastEventId: string;
  lines(wanted: LinesWanted): LineSource;
}

export interface LogSnapshot {
  /** Last durable event; null for an empty log. */
  readonly frontier: string | null;
  /** From oldest to newest; each holds at least one event. */
  readonly files: readonly LogFile[];
}

/** Reads files from oldest to newest, in chunks of whole lines, as a LineSource gives them. */
export async function* readLines(
  files: readonly LogFile[],
  wanted: LinesWanted,
): AsyncGenerator<Buffer, void> {
  for (const file of files) {
    if (wanted.after !== undefined && file.lastEventId <= wanted.after) continue;
    const source = file.lines(wanted);
    for (let lines = await source.next(); lines !== null; lines = await source.next()) yield lines;
  }
}
