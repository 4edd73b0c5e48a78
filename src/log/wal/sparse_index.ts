/**
 * Sparse index from event id to offset in a commit file: one mark every INDEX_INTERVAL_BYTES, so it
 * takes a few bytes per thousand events and a page of replay costs the same anywhere in the file.
 */
import type { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { firstIndex } from "../../first_index.ts";
import { lineEventId } from "../line/stored_line.ts";

/** Spacing of the marks: a read starts at most this far before the wanted event. */
export const INDEX_INTERVAL_BYTES: number = 64 * 1024;

const LF = 0x0a;

export class SparseIndex {
  /** Event id of each mark; both lists increase. */
  readonly #eventIds: string[] = [];
  readonly #offsets: number[] = [];
  /** The next mark is due at the first line that starts here or later. */
  #dueOffset = 0;

  /** Adds the next event lines of the file, which are whole and start at `offset`. */
  addLines(lines: Buffer, offset: number): void {
    while (this.#dueOffset < offset + lines.length) {
      // The first line that starts at the due offset or later.
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
    const later = firstIndex(this.#eventIds.length, (i) => this.#eventIds[i]! > after);
    return later === 0 ? 0 : this.#offsets[later - 1]!;
  }

  #mark(offset: number, eventId: string): void {
    const last = this.#eventIds.at(-1);
    assert(last === undefined || last < eventId, "index marks increase");
    this.#eventIds.push(eventId);
    this.#offsets.push(offset);
    this.#dueOffset = offset + INDEX_INTERVAL_BYTES;
  }
}
