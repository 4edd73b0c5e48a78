/** A segment as a snapshot sees it: the lines of the row groups that may hold what is wanted. */
import { Buffer } from "node:buffer";
import { LOOKUP_ROWS_MAX, READ_CHUNK_BYTES } from "../limits.ts";
import type { RowGroupCache } from "./row_group_cache.ts";
import { findRows } from "./segment_lookup.ts";
import type { StreamCount } from "./segment_metadata.ts";
import type { Segment } from "./segment_reader.ts";
import type { LineSource, LinesWanted, LogFile } from "./snapshot.ts";
import { firstLineAfter } from "./stored_line.ts";

const LF = 0x0a;

export class SegmentView implements LogFile {
  readonly path: string;
  readonly lastEventId: string;
  readonly streams: readonly StreamCount[];
  readonly #segment: Segment;
  readonly #cache: RowGroupCache;

  constructor(segment: Segment, cache: RowGroupCache) {
    this.path = segment.path;
    this.lastEventId = segment.metadata.last_event_id;
    this.streams = segment.metadata.streams;
    this.#segment = segment;
    this.#cache = cache;
  }

  lines(wanted: LinesWanted): LineSource {
    return new SegmentLines(this.#segment, this.#cache, wanted);
  }
}

class SegmentLines implements LineSource {
  readonly #segment: Segment;
  readonly #cache: RowGroupCache;
  readonly #wanted: LinesWanted;
  readonly #firstRowGroup: number;
  /** Those to come, the next one last; null before the first. */
  #rowGroups: number[] | null = null;
  /** What is left of the row group that is being handed out. */
  #lines: Buffer = Buffer.alloc(0);

  constructor(segment: Segment, cache: RowGroupCache, wanted: LinesWanted) {
    this.#segment = segment;
    this.#cache = cache;
    this.#wanted = wanted;
    const { after } = wanted;
    const first = after === undefined
      ? 0
      : segment.rowGroups.findIndex(({ lastEventId }) => lastEventId > after);
    this.#firstRowGroup = first < 0 ? segment.rowGroups.length : first;
  }

  async next(): Promise<Buffer | null> {
    this.#rowGroups ??= (await this.#segment.candidates(this.#wanted.filter, this.#firstRowGroup))
      .reverse();
    while (this.#lines.length === 0) {
      const number = this.#rowGroups.pop();
      if (number === undefined) return null;
      await this.#enterRowGroup(number);
    }
    const end = chunkEnd(this.#lines);
    // The row group is shared, and what is handed out may be changed.
    const chunk = Buffer.from(this.#lines.subarray(0, end));
    this.#lines = this.#lines.subarray(end);
    return chunk;
  }

  async #enterRowGroup(number: number): Promise<void> {
    const segment = this.#segment;
    const { after, filter } = this.#wanted;
    const rows = await findRows(segment, number, filter);
    const lines = rows !== null && rows.length <= LOOKUP_ROWS_MAX
      ? await segment.readRowGroup(number, rows)
      : await this.#readWhole(number);
    this.#lines = after === undefined ? lines : lines.subarray(firstLineAfter(lines, after));
  }

  #readWhole(number: number): Promise<Buffer> {
    const segment = this.#segment;
    return this.#cache.get(`${segment.path} ${number}`, () => segment.readRowGroup(number));
  }
}

/** End of the last line of the first chunk; a longer line is a chunk of its own. */
function chunkEnd(lines: Buffer): number {
  if (lines.length <= READ_CHUNK_BYTES) return lines.length;
  const end = lines.lastIndexOf(LF, READ_CHUNK_BYTES - 1) + 1;
  return end > 0 ? end : lines.indexOf(LF) + 1;
}
