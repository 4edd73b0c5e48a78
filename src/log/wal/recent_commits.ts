/**
 * The newest commits of a file in memory, byte for byte: followers and replays of the newest events
 * need no file. They are copied into one ring, so that the buffers that commits were written from
 * are collected while young.
 *
 * Invariant: the commits held are the last ones of the file, without a gap.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { firstIndex } from "../../first_index.ts";

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
  /** The byte at an offset of the file is here at that offset modulo the limit. */
  #ring: Buffer | null = null;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /**
   * Adds the next commit of the file, and evicts the oldest ones; one that is too large also.
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

  /** Offset of the commit with the first event after `after`; null if an older one may have it. */
  seek(after: string): number | null {
    const commits = this.#commits;
    const index = firstIndex(commits.length, (i) => (commits[i]!.lastEventId ?? "") > after);
    return index === 0 ? null : commits[index]?.offset ?? null;
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
}
