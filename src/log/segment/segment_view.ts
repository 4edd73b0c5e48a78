/** A segment as a snapshot sees it: the lines of the row groups that may hold what is wanted. */
import type { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { firstLineAfter } from "../line/stored_line.ts";
import type { FileStreams, LineSource, LinesWanted, LogFile } from "../read/snapshot.ts";
import type { ReadableSegment } from "./listed_segment.ts";
import type { RowGroupCache } from "./row_group_cache.ts";
import type { Segment } from "./segment_reader.ts";
import { SegmentStreams } from "./segment_streams.ts";

const LF = 0x0a;

export class SegmentView implements LogFile {
  readonly path: string;
  readonly lastEventId: string;
  readonly streams: FileStreams;
  readonly #segment: ReadableSegment;
  readonly #rowGroups: RowGroupCache;

  constructor(segment: ReadableSegment, rowGroups: RowGroupCache) {
    this.path = segment.path;
    this.lastEventId = segment.lastEventId;
    this.streams = new SegmentStreams(segment);
    this.#segment = segment;
    this.#rowGroups = rowGroups;
  }

  lines(wanted: LinesWanted): LineSource {
    return new SegmentLines(this.#segment, this.#rowGroups, wanted);
  }
}

class SegmentLines implements LineSource {
  readonly #segment: ReadableSegment;
  readonly #rowGroups: RowGroupCache;
  readonly #wanted: LinesWanted;
  /** Row groups to come, the next one last; null before the first. */
  #numbers: number[] | null = null;
  /** How much of the next row group has been handed out; null before its first chunk. */
  #handedBytes: number | null = null;

  constructor(segment: ReadableSegment, rowGroups: RowGroupCache, wanted: LinesWanted) {
    this.#segment = segment;
    this.#rowGroups = rowGroups;
    this.#wanted = wanted;
  }

  async next(): Promise<Buffer | null> {
    if (this.#numbers === null && this.#segment.isPruned(this.#wanted.filter)) return null;
    return await this.#segment.use(async (segment) => {
      this.#numbers ??= await this.#choose(segment);
      for (;;) {
        const number = this.#numbers.at(-1);
        if (number === undefined) return null;
        if (await this.#isWanted(segment, number)) return await this.#nextOf(segment, number);
        this.#numbers.pop();
      }
    });
  }

  /** The row groups to read, the first one last. */
  async #choose(segment: Segment): Promise<number[]> {
    const { after, filter } = this.#wanted;
    const { rowGroups } = segment;
    const isLater = ({ lastEventId }: { lastEventId: string }) =>
      after === undefined || lastEventId > after;
    const first = rowGroups.findIndex(isLater);
    if (first < 0) return [];
    return (await segment.prunedRowGroups(filter, first)).reverse();
  }

  /**
   * Whether to read a row group. In a large log a key passes ten Bloom filters by mistake: its
   * column alone costs a tenth of the row group.
   */
  async #isWanted(segment: Segment, number: number): Promise<boolean> {
    const { recordKey } = this.#wanted.filter;
    return recordKey === undefined || this.#handedBytes !== null ||
      this.#rowGroups.has(segment, number) || await segment.hasRecordKey(number, recordKey);
  }

  /** The next chunk of a row group: a copy, because cached lines are shared. */
  #nextOf(segment: Segment, number: number): Promise<Buffer> {
    const { after } = this.#wanted;
    return this.#rowGroups.read(segment, number, (lines) => {
      const start = this.#handedBytes ?? (after === undefined ? 0 : firstLineAfter(lines, after));
      const end = chunkEnd(lines, start);
      this.#handedBytes = end;
      if (end === lines.length) {
        this.#numbers!.pop();
        this.#handedBytes = null;
      }
      const chunk = this.#wanted.memory.take(end - start);
      chunk.set(lines.subarray(start, end));
      return chunk;
    });
  }
}

/** End of the last line of the chunk from `start` on; a longer line is a chunk of its own. */
function chunkEnd(lines: Buffer, start: number): number {
  if (lines.length - start <= READ_CHUNK_BYTES) return lines.length;
  const end = lines.lastIndexOf(LF, start + READ_CHUNK_BYTES - 1) + 1;
  return end > start ? end : lines.indexOf(LF, start) + 1;
}
