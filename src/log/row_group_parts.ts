/**
 * The lines of row groups, decoded and kept in memory by parts: runs of rows whose lines take about
 * as much as a page of replay. So a page costs what it shows and not its whole row group, and a
 * reader whose client is slow holds one part.
 */
import { Buffer } from "node:buffer";
import { ROW_GROUP_PART_BYTES, ROW_GROUP_STARTS_CACHE_BYTES_MAX } from "../limits.ts";
import { withDecodeMemory } from "./decode_memory.ts";
import { UUID_BYTES, uuidText } from "./line_bytes.ts";
import { RowGroupCache } from "./row_group_cache.ts";
import { RowGroupCursors } from "./row_group_cursors.ts";
import { LineMemory } from "./segment_lines.ts";
import type { RowGroup, Segment } from "./segment_reader.ts";
import { LINE_FIXED_BYTES } from "./line_layout.ts";

/** Events of one row group differ in size. A longer part has memory of its own. */
const PART_MEMORY_BYTES = 2 * ROW_GROUP_PART_BYTES;

export class RowGroupParts {
  readonly #lines = new RowGroupCache();
  /** The id of the first event of each part of a row group. */
  readonly #starts = new RowGroupCache(ROW_GROUP_STARTS_CACHE_BYTES_MAX);
  readonly #cursors = new RowGroupCursors();
  /** Where parts are put together; their size is known afterwards. */
  #memory = new LineMemory(PART_MEMORY_BYTES);

  /**
   * The lines of a part, each with its LF. Shared: nobody may change them. @throws {SegmentError}
   */
  lines(segment: Segment, number: number, part: number): Promise<Buffer> {
    const key = `${segment.path} ${number} ${part}`;
    return this.#lines.get(key, () => this.#decode(segment, number, part));
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

  async #decode(segment: Segment, number: number, part: number): Promise<Buffer> {
    const { path, rowGroups } = segment;
    const { rows } = rowGroups[number]!;
    const partRows = rowsOfPart(rowGroups[number]!);
    const firstRow = part * partRows;
    const endRow = Math.min(firstRow + partRows, rows);
    return await withDecodeMemory(async () => {
      const { cursor, isOpen } = this.#cursors.take(placeKey(path, number, firstRow));
      if (!isOpen) await segment.openRowGroup(number, cursor);
      this.#memory.end = 0;
      segment.putLines(cursor, this.#memory, firstRow, endRow);
      this.#cursors.keep(cursor, endRow < rows ? placeKey(path, number, endRow) : null);
      return this.#takeLines();
    });
  }

  /** The lines that were put together, in memory of their own. */
  #takeLines(): Buffer {
    const { lines } = this.#memory;
    if (lines.length > PART_MEMORY_BYTES) {
      this.#memory = new LineMemory(PART_MEMORY_BYTES);
      return lines;
    }
    const copy = Buffer.allocUnsafeSlow(lines.length);
    lines.copy(copy);
    return copy;
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
