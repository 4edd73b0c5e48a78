/**
 * An in-memory copy of a file's newest commits, so that followers and replays of the newest events
 * need no file reads. Readers copy the bytes, so an evicted commit is freed immediately.
 *
 * Invariant: the cached commits are the last ones in the file, without a gap.
 */
import type { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { firstIndex } from "../../first_index.ts";
import { freeOwnMemory } from "../../free_memory.ts";

interface RecentCommit {
  bytes: Buffer;
  offset: number;
  endOffset: number;
  /** Last event in the file up to this commit; null if there is none. */
  lastEventId: string | null;
}

export class RecentCommits {
  /** Oldest first. */
  readonly #commits: RecentCommit[] = [];
  readonly #limitBytes: number;
  /** Last event in the file before these commits; null if there is none. */
  #lastEventIdBefore: string | null;

  /** @param lastEventId last event in the file so far; null if there is none. */
  constructor(limitBytes: number, lastEventId: string | null) {
    this.#limitBytes = limitBytes;
    this.#lastEventIdBefore = lastEventId;
  }

  /** Adds the next commit and evicts the oldest; a commit over the limit also evicts itself. */
  add(offset: number, bytes: Buffer, lastEventId: string | null): void {
    const commits = this.#commits;
    assert((commits.at(-1)?.endOffset ?? offset) === offset, "recent commits must have no gap");
    const endOffset = offset + bytes.length;
    commits.push({ bytes, offset, endOffset, lastEventId });
    while (commits.length > 0 && endOffset - commits[0]!.offset > this.#limitBytes) {
      const oldest = commits.shift()!;
      this.#lastEventIdBefore = oldest.lastEventId;
      freeOwnMemory(oldest.bytes);
    }
  }

  /** Returns the offset of the commit with the first event after `after`; null if not cached. */
  seek(after: string): number | null {
    const commits = this.#commits;
    if (after < (this.#lastEventIdBefore ?? "")) return null;
    const index = firstIndex(commits.length, (i) => (commits[i]!.lastEventId ?? "") > after);
    return commits[index]?.offset ?? null;
  }

  /** Fills `into` from `position` in the file; returns false if the range is not fully cached. */
  read(into: Uint8Array, position: number): boolean {
    const commits = this.#commits;
    const isHeld = commits.length > 0 && commits[0]!.offset <= position &&
      position + into.length <= commits.at(-1)!.endOffset;
    if (!isHeld) return false;
    let index = firstIndex(commits.length, (i) => commits[i]!.endOffset > position);
    for (let filled = 0; filled < into.length; index++) {
      const { bytes, offset } = commits[index]!;
      filled += bytes.copy(into, filled, position + filled - offset);
    }
    return true;
  }
}
