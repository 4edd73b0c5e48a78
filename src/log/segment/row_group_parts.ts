/**
 * The lines of row groups, decoded and kept in memory by parts: runs of rows whose lines take about
 * as much as a page of replay. So a page costs what it shows and not its whole row group. A part is
 * read in one turn of the event loop, so that its memory can be used again for another one: to have
 * it anew for each and give it back would take a fifth of the time.
 */
import { Buffer } from "node:buffer";
import { withDecodeMemory } from "../parquet/decode_memory.ts";
import { UUID_BYTES, uuidText } from "../line/line_bytes.ts";
import { PartCache } from "./part_cache.ts";
import { RowGroupCache } from "./row_group_cache.ts";
import { RowGroupCursors } from "./row_group_cursors.ts";
import type { LineMemory } from "./segment_lines.ts";
import type { RowGroup, Segment } from "./segment_reader.ts";
import { LINE_FIXED_BYTES } from "../line/line_layout.ts";

/** Ids of the first events of parts kept in memory: those of thirty million events. */
const ROW_GROUP_STARTS_CACHE_BYTES_MAX = 1024 * 1024;

/**
 * Lines of a row group that are decoded at once, about: a page of replay at the default limit has
 * two or three such parts.
 */
export const ROW_GROUP_PART_BYTES: number = 384 * 1024;

/** What is made of the lines of a part. */
export type ReadLines<Result> = (lines: Buffer) => Result;

export class RowGroupParts {
  readonly #parts = new PartCache();
  /** Parts that are being decoded. */
  readonly #decoding = new Map<string, Promise<unknown>>();
  readonly #cursors = new RowGroupCursors();
  /** The id of the first event of each part of a row group. */
  readonly #starts = new RowGroupCache(ROW_GROUP_STARTS_CACHE_BYTES_MAX);

  /**
   * Calls `read` with the lines of a part, each with its LF. Shared, and gone when it returns: it
   * may not change them, and must copy what it keeps. @throws {SegmentError}
   */
  async read<Result>(
    segment: Segment,
    number: number,
    part: number,
    read: ReadLines<Result>,
  ): Promise<Result> {
    const key = `${segment.path} ${number} ${part}`;
    for (;;) {
      const lines = this.#parts.get(key);
      if (lines !== null) return read(lines);
      const decoding = this.#decoding.get(key);
      if (decoding === undefined) break;
      await decoding;
    }
    const decoded = this.#decode(segment, number, part, (memory) => {
      // Before it is kept: a larger one than the cache is not.
      const result = read(memory.lines);
      this.#parts.keep(key, memory);
      return result;
    });
    this.#decoding.set(key, decoded);
    try {
      return await decoded;
    } finally {
      this.#decoding.delete(key);
    }
  }

  /** The first part that may hold an event after the one of that id. @throws {SegmentError} */
  async partAfter(segment: Segment, number: number, eventId: string): Promise<number> {
    const rowGroup = segment.rowGroups[number]!;
    if (partCount(rowGroup) === 1 || eventId < rowGroup.firstEventId) return 0;
    const starts = await this.#starts.get(
      `${segment.path} ${number}`,
      () => readStarts(segment, number),
    );
    let part = starts.length / UUID_BYTES - 1;
    while (part > 0 && uuidText(starts, part * UUID_BYTES) > eventId) part -= 1;
    return part;
  }

  /** Gives `use` a part in memory that is its own from there on. */
  #decode<Result>(
    segment: Segment,
    number: number,
    part: number,
    use: (memory: LineMemory) => Result,
  ): Promise<Result> {
    const { path, rowGroups } = segment;
    const { rows } = rowGroups[number]!;
    const partRows = rowsOfPart(rowGroups[number]!);
    const firstRow = part * partRows;
    const endRow = Math.min(firstRow + partRows, rows);
    return withDecodeMemory(async () => {
      const { cursor, isOpen } = this.#cursors.take(placeKey(path, number, firstRow));
      if (!isOpen) await segment.openRowGroup(number, cursor);
      const memory = this.#parts.takeMemory();
      segment.putLines(cursor, memory, firstRow, endRow);
      this.#cursors.keep(cursor, endRow < rows ? placeKey(path, number, endRow) : null);
      return use(memory);
    });
  }
}

function placeKey(path: string, number: number, row: number): string {
  return `${path} ${number} ${row}`;
}

/** Number of the parts of a row group. */
export function partCount(rowGroup: RowGroup): number {
  return Math.ceil(rowGroup.rows / rowsOfPart(rowGroup));
}

/** Rows of each part but the last; one at least. */
export function rowsOfPart({ rows, columns }: RowGroup): number {
  const valueBytes = columns.reduce((sum, column) => sum + column.uncompressedBytes, 0);
  const lineBytes = valueBytes / rows + LINE_FIXED_BYTES;
  return Math.min(rows, Math.max(1, Math.floor(ROW_GROUP_PART_BYTES / lineBytes)));
}

function readStarts(segment: Segment, number: number): Promise<Buffer> {
  const rowGroup = segment.rowGroups[number]!;
  const partRows = rowsOfPart(rowGroup);
  const rows = Array.from({ length: partCount(rowGroup) }, (_, part) => part * partRows);
  return withDecodeMemory(async (memory) => {
    const { event_id } = await segment.readColumns(number, ["event_id"], { rows, memory });
    const starts = Buffer.allocUnsafeSlow(rows.length * UUID_BYTES);
    rows.forEach((_, part) => {
      const start = event_id.starts[part]!;
      event_id.bytes.copy(starts, part * UUID_BYTES, start, start + UUID_BYTES);
    });
    return starts;
  });
}
