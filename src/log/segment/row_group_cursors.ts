/**
 * Row groups that are open where a reader will probably go on. A reader in order finds the one that
 * it needs next; those that nobody comes back for give their memory to others, the ones left
 * longest first.
 */
import { RowGroupCursor } from "./row_group_cursor.ts";

/**
 * Row groups kept open for readers that go on in order, a megabyte each at the ordinary size: their
 * compressed bytes, and of each column one page. Of another one the next part is opened anew.
 */
const ROW_GROUP_CURSORS_BYTES_MAX = 8 * 1024 * 1024;

interface Kept {
  cursor: RowGroupCursor;
  /** What its next row is called; null when it has none. */
  place: string | null;
  sizeBytes: number;
}

export class RowGroupCursors {
  /** Those to be given up first come first. */
  #kept: Kept[] = [];
  #sizeBytes = 0;
  readonly #limitBytes: number;

  constructor(limitBytes: number = ROW_GROUP_CURSORS_BYTES_MAX) {
    this.#limitBytes = limitBytes;
  }

  /** The one that stands at a place, or one to be opened there. */
  take(place: string): { cursor: RowGroupCursor; isOpen: boolean } {
    let kept = this.#kept.find((held) => held.place === place);
    const isOpen = kept !== undefined;
    // With memory to spare a further one is made; else that of another is used again.
    const [first] = this.#kept;
    if (first !== undefined && (first.place === null || this.#isFull(first))) kept ??= first;
    if (kept === undefined) return { cursor: new RowGroupCursor(), isOpen };
    this.#drop(kept);
    return { cursor: kept.cursor, isOpen };
  }

  /** Takes back one that stands at a place; null when it has come to its end. */
  keep(cursor: RowGroupCursor, place: string | null): void {
    const { sizeBytes } = cursor;
    const kept = { cursor, place, sizeBytes };
    if (place === null) this.#kept.unshift(kept);
    else this.#kept.push(kept);
    this.#sizeBytes += sizeBytes;
    while (this.#sizeBytes > this.#limitBytes) this.#drop(this.#kept[0]!);
  }

  /** Whether there is no room for one more as large as that. */
  #isFull({ sizeBytes }: Kept): boolean {
    return this.#sizeBytes + sizeBytes > this.#limitBytes;
  }

  #drop(kept: Kept): void {
    this.#kept = this.#kept.filter((other) => other !== kept);
    this.#sizeBytes -= kept.sizeBytes;
  }
}
