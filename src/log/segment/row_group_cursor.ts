/**
 * Goes forward through a row group and puts its lines together: of each column one page is
 * decompressed at a time, so that a reader holds far less than the row group, and each page is read
 * once however small the steps. The memory is used again for the next row group that is opened.
 */
import type { Buffer } from "node:buffer";
import { ColumnCursor } from "../parquet/column_cursor.ts";
import { DecodeMemory } from "../parquet/decode_memory.ts";
import type { RowGroup } from "./segment_footer.ts";
import { type LineColumns, type LineMemory, putLines } from "./segment_lines.ts";
import { COLUMN_NAMES, type ColumnName, columnNumber } from "./segment_schema.ts";

/** The columns that lines are made of, in the order of the schema. */
export const LINE_COLUMN_NAMES: readonly Exclude<ColumnName, "batch_digest">[] = COLUMN_NAMES
  .filter((name) => name !== "batch_digest");

export class RowGroupCursor {
  /** Where the bytes of the columns are read to. */
  readonly memory: DecodeMemory = new DecodeMemory();
  readonly #columns = LINE_COLUMN_NAMES.map((name) => ({ name, cursor: new ColumnCursor(name) }));
  #chunkBytes = 0;

  /** Bytes of its memory. */
  get sizeBytes(): number {
    return this.#columns.reduce((sum, { cursor }) => sum + cursor.sizeBytes, this.#chunkBytes);
  }

  /** Starts anew, before the first row. @param chunks the bytes of each column of a line. */
  open({ rows, columns }: RowGroup, chunks: readonly Buffer[]): void {
    this.#chunkBytes = chunks.reduce((sum, { length }) => sum + length, 0);
    this.#columns.forEach(({ name, cursor }, place) => {
      cursor.open(chunks[place]!, columns[columnNumber(name)]!.uncompressedBytes, rows);
    });
  }

  /**
   * Appends the lines of the rows [first, end), of which none is before one that it has given.
   * @throws {SegmentError}
   */
  putLines(into: LineMemory, first: number, end: number): void {
    for (let row = first; row < end;) {
      let runEnd = end;
      for (const { cursor } of this.#columns) runEnd = Math.min(runEnd, cursor.goTo(row));
      const values = this.#columns.map(({ name, cursor }) => [name, cursor.values(row, runEnd)]);
      putLines(into, Object.fromEntries(values) as LineColumns);
      row = runEnd;
    }
  }
}
