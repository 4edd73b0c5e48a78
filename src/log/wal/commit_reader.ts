/**
 * Reads a tail or pending file commit by commit and checks the hash of each frame, without parsing
 * events. Memory is bounded by the largest commit.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../../limits.ts";
import type { StorageFile } from "../storage/storage.ts";
import { type Commit, hashFrame, parseCommitHeader } from "./commit_frame.ts";
import { LF } from "../line/line_bytes.ts";

const CHUNK_BYTES = 1024 * 1024;

/** A commit with a valid frame. */
export interface WholeCommit {
  commit: Commit;
  /** The commit's bytes, valid until the next call. */
  frame: Buffer;
  /** The event lines, each with its LF; a view of `frame`. */
  lines: Buffer;
  /** End of the commit in the file. */
  endBytes: number;
}

export class CommitReader {
  readonly #file: StorageFile;
  readonly #sizeBytes: number;
  /** End of the last commit read. */
  endBytes: number;
  /** Why the bytes at `endBytes` are not a valid commit; null while all are valid. */
  fault: string | null = null;
  /** Unread bytes are #buffer[#start, #filled); #start is at `endBytes` in the file. */
  #buffer: Buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  #start = 0;
  #filled = 0;

  /** Reads commits from `startBytes`, the start of a commit, up to `sizeBytes`. */
  constructor(file: StorageFile, startBytes: number, sizeBytes: number) {
    assert(startBytes <= sizeBytes, "a range must not end before it starts");
    this.#file = file;
    this.#sizeBytes = sizeBytes;
    this.endBytes = startBytes;
  }

  /** Reads the next commit; returns null at the end or if the next commit is invalid. */
  async next(): Promise<WholeCommit | null> {
    if (this.endBytes === this.#sizeBytes || this.fault !== null) return null;
    const headerBytes = await this.#headerBytes();
    const start = this.#start;
    const header = parseCommitHeader(this.#buffer, start, start + headerBytes - 1);
    if (header === null || header.commit.bytes > COMMIT_BODY_BYTES_MAX) {
      return this.#stop("no commit header");
    }
    const { commit, sha256 } = header;
    const frameBytes = headerBytes + commit.bytes;
    const endBytes = this.endBytes + frameBytes;
    if (endBytes > this.#sizeBytes) {
      return this.#stop(
        `the commit ends at byte ${endBytes}, but the file ends at byte ${this.#sizeBytes}`,
      );
    }
    const isWhole = this.#unreadBytes >= frameBytes || await this.#fill(frameBytes);
    const frame = this.#buffer.subarray(this.#start, this.#start + frameBytes);
    const endsLine = isWhole && frame[frameBytes - 1] === LF;
    if (!endsLine || hashFrame(frame, headerBytes - 1) !== sha256) {
      return this.#stop("the commit does not match its sha256");
    }
    this.#start += frameBytes;
    this.endBytes = endBytes;
    return { commit, frame, lines: frame.subarray(headerBytes), endBytes };
  }

  /** Returns the length of the header line, including its LF; 0 if none ends within the limit. */
  async #headerBytes(): Promise<number> {
    for (let searchedBytes = 0; searchedBytes <= COMMIT_HEADER_BYTES_MAX;) {
      const filled = this.#buffer.subarray(0, this.#filled);
      const sizeBytes = filled.indexOf(LF, this.#start + searchedBytes) + 1 - this.#start;
      if (sizeBytes > 0) return sizeBytes <= COMMIT_HEADER_BYTES_MAX ? sizeBytes : 0;
      searchedBytes = this.#unreadBytes;
      if (!(await this.#fill(searchedBytes + 1))) return 0;
    }
    return 0;
  }

  get #unreadBytes(): number {
    return this.#filled - this.#start;
  }

  /**
   * Moves the unread bytes to the start of a buffer of at least `wantedBytes`, and fills it.
   * @returns false if the range or the file ends before `wantedBytes`.
   */
  async #fill(wantedBytes: number): Promise<boolean> {
    const unread = this.#buffer.subarray(this.#start, this.#filled);
    if (wantedBytes > this.#buffer.length) {
      this.#buffer = Buffer.allocUnsafeSlow(wantedBytes + CHUNK_BYTES);
    }
    this.#buffer.set(unread);
    const into = this.#buffer.subarray(unread.length, this.#sizeBytes - this.endBytes);
    this.#start = 0;
    this.#filled = unread.length + await this.#file.read(into, this.endBytes + unread.length);
    return this.#filled >= wantedBytes;
  }

  #stop(fault: string): null {
    this.fault = fault;
    return null;
  }
}
