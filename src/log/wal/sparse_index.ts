/**
 * Where to start reading a commit file for the events after an id: one mark every
 * INDEX_INTERVAL_BYTES, so memory is a few bytes per thousand events and a page of replay costs the
 * same anywhere in the file. Marks are in order of offset and so of id.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { ownText } from "../../event/own_text.ts";
import { ID_END_OFFSET, lineEventId } from "../line/stored_line.ts";

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
  /** Marks within a commit that is not known to be right yet. */
  #staged: { eventId: string; offset: number }[] = [];

  /** Tells of the next piece of a commit's event lines; `offset` is its place in the file. */
  stageLines(piece: Uint8Array, offset: number): void {
    const lastStaged = this.#staged.at(-1);
    let dueOffset = lastStaged ? lastStaged.offset + INDEX_INTERVAL_BYTES : this.#dueOffset;
    if (dueOffset >= offset + piece.length) return;
    const buffer = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    while (dueOffset < offset + piece.length) {
      const newline = buffer.indexOf(LF, Math.max(0, dueOffset - offset - 1));
      const lineStart = newline + 1;
      if (newline < 0 || lineStart + ID_END_OFFSET > buffer.length) return;
      this.#staged.push({ eventId: lineEventId(buffer, lineStart), offset: offset + lineStart });
      dueOffset = offset + lineStart + INDEX_INTERVAL_BYTES;
    }
  }

  /** Takes in a commit whose header is at `offset`, with the lines staged before. */
  addCommit(offset: number, firstEventId: string): void {
    this.#mark(offset, firstEventId);
    for (const { offset, eventId } of this.#staged) this.#mark(offset, eventId);
    this.discardStaged();
  }

  /** Forgets the staged lines: their commit is none. */
  discardStaged(): void {
    if (this.#staged.length > 0) this.#staged = [];
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
    if (offset < this.#dueOffset) return;
    const last = this.#eventIds.at(-1);
    assert(last === undefined || last < eventId, "index marks increase");
    this.#eventIds.push(ownText(eventId));
    this.#offsets.push(offset);
    this.#dueOffset = offset + INDEX_INTERVAL_BYTES;
  }
}
