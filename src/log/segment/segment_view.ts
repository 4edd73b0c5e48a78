/** A segment as a snapshot sees it: the lines of the row groups that may hold what is wanted. */
import { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import type { KeyRows } from "./key_rows.ts";
import { partCount, type RowGroupParts, rowsOfPart } from "./row_group_parts.ts";
import { findRows } from "./segment_lookup.ts";
import type { ReadableSegment } from "./listed_segment.ts";
import type { RowGroup, Segment } from "./segment_reader.ts";
import { SegmentStreams } from "./segment_streams.ts";
import type { FileStreams, LineSource, LinesWanted, LogFile } from "../read/snapshot.ts";
import { firstLineAfter } from "../line/stored_line.ts";

/**
 * Events that pass a filter, up to so many of a row group, are read by the pages that hold them.
 * For more the row group is read as a whole and kept: most of its pages are needed then.
 */
export const LOOKUP_ROWS_MAX: number = 64;

const LF = 0x0a;
const NO_LINES = Buffer.alloc(0);

/** What is kept in memory of the row groups of all segments. */
export interface RowGroupCaches {
  parts: RowGroupParts;
  keyRows: KeyRows;
}

export class SegmentView implements LogFile {
  readonly path: string;
  readonly lastEventId: string;
  readonly streams: FileStreams;
  readonly #segment: ReadableSegment;
  readonly #caches: RowGroupCaches;

  constructor(segment: ReadableSegment, caches: RowGroupCaches) {
    this.path = segment.path;
    this.lastEventId = segment.lastEventId;
    this.streams = new SegmentStreams(segment);
    this.#segment = segment;
    this.#caches = caches;
  }

  lines(wanted: LinesWanted): LineSource {
    return new SegmentLines(this.#segment, this.#caches, wanted);
  }
}

class SegmentLines implements LineSource {
  readonly #segment: ReadableSegment;
  readonly #caches: RowGroupCaches;
  readonly #wanted: LinesWanted;
  /** Those to come, the next one last; null before the first. */
  #rowGroups: number[] | null = null;
  /** The one whose parts are being handed out, and these, the next one last. */
  #rowGroup = 0;
  #parts: number[] = [];
  /** How much of the next part has been handed out; null when it has not been looked at. */
  #handedBytes: number | null = null;

  constructor(segment: ReadableSegment, caches: RowGroupCaches, wanted: LinesWanted) {
    this.#segment = segment;
    this.#caches = caches;
    this.#wanted = wanted;
  }

  async next(): Promise<Buffer | null> {
    if (this.#rowGroups === null && this.#segment.isRuledOut(this.#wanted.filter)) return null;
    return await this.#segment.use(async (segment) => {
      for (;;) {
        const lines = this.#parts.length > 0
          ? await this.#nextOfPart(segment)
          : await this.#enterRowGroup(segment);
        if (lines === null || lines.length > 0) return lines;
      }
    });
  }

  /** A copy of what comes next of a part, for the part is shared; it may be empty. */
  async #nextOfPart(segment: Segment): Promise<Buffer> {
    return await this.#caches.parts.read(segment, this.#rowGroup, this.#parts.at(-1)!, (lines) => {
      const start = this.#handedBytes ?? this.#firstIn(lines);
      const end = chunkEnd(lines, start);
      this.#handedBytes = end;
      if (end === lines.length) {
        this.#parts.pop();
        this.#handedBytes = null;
      }
      const chunk = this.#wanted.memory.take(end - start);
      chunk.set(lines.subarray(start, end));
      return chunk;
    });
  }

  /** Where the lines begin that are wanted. */
  #firstIn(lines: Buffer): number {
    const { after } = this.#wanted;
    return after === undefined ? 0 : firstLineAfter(lines, after);
  }

  /**
   * Goes on to the parts of the next row group; returns few lines by themselves, mostly none. Null
   * when there is no other row group.
   */
  async #enterRowGroup(segment: Segment): Promise<Buffer | null> {
    const { after, filter } = this.#wanted;
    this.#rowGroups ??= (await segment.candidates(filter, firstRowGroup(segment, after)))
      .reverse();
    const number = this.#rowGroups.pop();
    if (number === undefined) return null;
    const rows = await findRows(segment, number, filter, this.#caches.keyRows);
    if (rows !== null && rows.length <= LOOKUP_ROWS_MAX) {
      const lines = await segment.readRowGroup(number, rows);
      return lines.subarray(this.#firstIn(lines));
    }
    this.#rowGroup = number;
    const first = after === undefined
      ? 0
      : await this.#caches.parts.partAfter(segment, number, after);
    this.#parts = partsWith(segment.rowGroups[number]!, rows)
      .filter((part) => part >= first).reverse();
    return NO_LINES;
  }
}

/** The parts of a row group that hold any of some rows; all when those are null. */
function partsWith(rowGroup: RowGroup, rows: readonly number[] | null): number[] {
  if (rows === null) return Array.from({ length: partCount(rowGroup) }, (_, part) => part);
  const partRows = rowsOfPart(rowGroup);
  return [...new Set(rows.map((row) => Math.floor(row / partRows)))];
}

/** The row group that holds the first event after `after`; their number when there is none. */
function firstRowGroup({ rowGroups }: Segment, after: string | undefined): number {
  if (after === undefined) return 0;
  const first = rowGroups.findIndex(({ lastEventId }) => lastEventId > after);
  return first < 0 ? rowGroups.length : first;
}

/** End of the last line of the chunk from `start` on; a longer line is a chunk of its own. */
function chunkEnd(lines: Buffer, start: number): number {
  if (lines.length - start <= READ_CHUNK_BYTES) return lines.length;
  const end = lines.lastIndexOf(LF, start + READ_CHUNK_BYTES - 1) + 1;
  return end > start ? end : lines.indexOf(LF, start) + 1;
}
