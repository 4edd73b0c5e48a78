/** A consistent view of the log: its durable state at one moment. */
import type { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { LF } from "../line/line_bytes.ts";
import { type EventFilter, isHeaderLine } from "../line/stored_line.ts";
import { ScanMemory } from "./scan_memory.ts";
import type { StreamSource } from "./stream_counts.ts";

/** The events that a reader wants from a file. The file may return others as well. */
export interface LinesWanted {
  /** Exclusive lower bound. */
  after: string | undefined;
  filter: EventFilter;
  /** Estimates the bytes still wanted, to size reads. */
  wantedBytes: () => number;
  memory: ScanMemory;
  /** Waits until a block that is larger than READ_CHUNK_BYTES may be in memory. */
  reserve?: (sizeBytes: number) => Promise<void>;
}

/** A segment, a pending file, or the tail up to the snapshot's end. */
export interface LogFile {
  readonly path: string;
  readonly lastEventId: string;
  /**
   * Yields chunks of one or more complete lines, including commit headers, in log order. A chunk is
   * valid until the next one is requested, and the caller may overwrite it.
   */
  lines(wanted: LinesWanted): AsyncGenerator<Buffer, void>;
}

export interface SealedFile extends LogFile {
  /** Lists the streams. */
  readonly index: StreamSource;
}

export interface LogSnapshot {
  /** Last durable event; null for an empty log. */
  readonly frontier: string | null;
  /** All files that have events, oldest first. */
  readonly files: readonly LogFile[];
}

/** Reads files one after another, in chunks as in `LogFile.lines()`, until `endsAfter` a file. */
export async function* readLines(
  files: readonly LogFile[],
  wanted: LinesWanted,
  endsAfter: (file: LogFile) => boolean | Promise<boolean> = () => false,
): AsyncGenerator<Buffer, void> {
  for (const file of files) {
    if (wanted.after !== undefined && file.lastEventId <= wanted.after) continue;
    yield* file.lines(wanted);
    if (await endsAfter(file)) return;
  }
}

/** Calls `visit` with the start of each event line, in log order, until it returns false. */
export async function walkEvents(
  file: LogFile,
  visit: (chunk: Buffer, lineStart: number) => boolean,
): Promise<void> {
  const memory = new ScanMemory();
  const wanted = { after: undefined, filter: {}, wantedBytes: () => READ_CHUNK_BYTES, memory };
  for await (const chunk of file.lines(wanted)) {
    for (let start = 0; start < chunk.length; start = chunk.indexOf(LF, start) + 1) {
      if (!isHeaderLine(chunk, start) && !visit(chunk, start)) return;
    }
  }
  memory.release();
}
