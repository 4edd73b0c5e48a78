/**
 * The newest commits of a file in memory, byte for byte, so that those who read at its end need no
 * file: followers, and replays of the newest events. They are copied into one ring: what commits
 * were written from can be collected while it is young.
 *
 * Invariant: the commits held are the last ones of the file, without a gap between them.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";

/** Its bytes are in the ring. */
interface RecentCommit {
  offset: number;
  endOffset: number;
  /** Last event of the file up to here; null when there is none. */
  lastEventId: string | null;
}

export class RecentCommits {
  /** From oldest to newest. */
  readonly #commits: RecentCommit[] = [];
  readonly #limitBytes: number;
  /** What is at a position of the file is here at that position modulo the limit. */
  #ring: Buffer | null = null;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /**
   * Takes in the next commit of the file. The oldest ones make room, and it goes too if too large.
   * @param pieces its bytes, one piece after the other.
   */
  add(offset: number, pieces: readonly Uint8Array[], lastEventId: string | null): void {
    assert(this.#commits.length === 0 || offset === this.#endOffset, "recent commits have no gap");
    let endOffset = offset;
    for (const { length } of pieces) endOffset += length;
    this.#commits.push({ offset, endOffset, lastEventId });
    while (this.#commits.length > 0 && endOffset - this.#commits[0]!.offset > this.#limitBytes) {
      this.#commits.shift();
    }
    if (this.#commits.length === 0) return;
    for (const bytes of pieces) {
      this.#put(offset, bytes);
      offset += bytes.length;
    }
  }

  /** Forgets all: the file takes no more commits. */
  clear(): void {
    this.#commits.length = 0;
    this.#ring = null;
  }

  /**
   * Offset of the commit with the first event after `after`; null where an older one may have it.
   */
  seek(after: string): number | null {
    const place = this.#firstWhere(({ lastEventId }) => (lastEventId ?? "") > after);
    return place === 0 ? null : this.#commits[place]?.offset ?? null;
  }

  /** Fills `into` from `position` of the file; false when not all of that is held. */
  read(into: Uint8Array, position: number): boolean {
    const first = this.#commits[0];
    if (first === undefined || position < first.offset) return false;
    if (position + into.length > this.#endOffset) return false;
    const start = position % this.#limitBytes;
    const piece = this.#ring!.subarray(start, start + into.length);
    into.set(piece);
    into.set(this.#ring!.subarray(0, into.length - piece.length), piece.length);
    return true;
  }

  #put(offset: number, bytes: Uint8Array): void {
    this.#ring ??= Buffer.allocUnsafeSlow(this.#limitBytes);
    const start = offset % this.#limitBytes;
    const piece = bytes.subarray(0, this.#limitBytes - start);
    this.#ring.set(piece, start);
    this.#ring.set(bytes.subarray(piece.length), 0);
  }

  get #endOffset(): number {
    return this.#commits.at(-1)!.endOffset;
  }

  /** Place of the first commit that is as `test` says; all after it are too. */
  #firstWhere(test: (commit: RecentCommit) => boolean): number {
    let low = 0;
    let high = this.#commits.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (test(this.#commits[middle]!)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
