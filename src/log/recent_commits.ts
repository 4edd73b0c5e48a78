/**
 * The newest commits of a file in memory, byte for byte, so that those who read at its end need no
 * file: followers, and replays of the newest events.
 *
 * Invariant: the commits held are the last ones of the file, without a gap between them.
 */
import type { Buffer } from "node:buffer";
import { assert } from "../assert.ts";

interface RecentCommit {
  offset: number;
  bytes: Buffer;
  /** Last event of the file up to here; null when there is none. */
  lastEventId: string | null;
}

/** What a commit takes besides its bytes, about. */
const COMMIT_OVERHEAD_BYTES = 256;

export class RecentCommits {
  /** From oldest to newest. */
  readonly #commits: RecentCommit[] = [];
  readonly #limitBytes: number;
  #heldBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /**
   * Takes in the next commit of the file. The oldest ones make room, and it goes too if too large.
   */
  add(offset: number, bytes: Buffer, lastEventId: string | null): void {
    assert(this.#commits.length === 0 || offset === this.#endOffset, "recent commits have no gap");
    this.#commits.push({ offset, bytes, lastEventId });
    this.#heldBytes += bytes.length + COMMIT_OVERHEAD_BYTES;
    while (this.#heldBytes > this.#limitBytes) {
      this.#heldBytes -= this.#commits.shift()!.bytes.length + COMMIT_OVERHEAD_BYTES;
    }
  }

  /** Forgets all: the file takes no more commits. */
  clear(): void {
    this.#commits.length = 0;
    this.#heldBytes = 0;
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
    let place = this.#firstWhere(({ offset, bytes }) => offset + bytes.length > position);
    for (let done = 0; done < into.length; place++) {
      const { offset, bytes } = this.#commits[place]!;
      const piece = bytes.subarray(position + done - offset).subarray(0, into.length - done);
      into.set(piece, done);
      done += piece.length;
    }
    return true;
  }

  get #endOffset(): number {
    const last = this.#commits.at(-1)!;
    return last.offset + last.bytes.length;
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
