/**
 * Where to start reading a commit file for the events after an id: one mark every
 * INDEX_INTERVAL_BYTES, so memory is a few bytes per thousand events and a page of replay costs the
 * same anywhere in the file. Marks are in order of offset and so of id.
 */
import type { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { lineEventId } from "../line/stored_line.ts";

/**
 * Spacing of the sparse in-memory index over a commit file: a page starts at most this far early.
 */
export const INDEX_INTERVAL_BYTES: number = 64 * 1024;

const LF = 0x0a;

export class SparseIndex {
  /** First event at or after the offset of the same position. */
  readonly #eventIds: string[] = [];
  readonly #offsets: number[] = [];
  /** The next mark is due at the first line that starts here or later. */
  #dueOffset = 0;

  /** Takes in the next event lines of the file, whole ones; `offset` is their place in it. */
  addLines(lines: Buffer, offset: number): void {
    while (this.#dueOffset < offset + lines.length) {
      // The first line, or the one after the last LF before the place where a mark is due.
      const start = this.#dueOffset <= offset
        ? 0
        : lines.indexOf(LF, this.#dueOffset - offset - 1) + 1;
      if (start === lines.length) return;
      this.#mark(offset + start, lineEventId(lines, start));
    }
  }

  /** Offset of a line at or before the first event after `after`; 0 reads from the start. */
  seek(after: string | undefined): number {
    if (after === undefined) return 0;
    let low = 0;
    let high = this.#eventIds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#eventIds[middle]! <= after) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? 0 : this.#offsets[low - 1]!;
  }

  #mark(offset: number, eventId: string): void {
    const last = this.#eventIds.at(-1);
    assert(last === undefined || last < eventId, "index marks increase");
    this.#eventIds.push(eventId);
    this.#offsets.push(offset);
    this.#dueOffset = offset + INDEX_INTERVAL_BYTES;
  }
}
