/**
 * Reads a tail or pending file commit by commit and checks the hash of each frame, without parsing
 * events. Memory is bounded by the largest commit.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../../limits.ts";
import { CorruptLogError } from "../storage/errors.ts";
import type { StorageFile } from "../storage/storage.ts";
import { type Commit, type CommitHeader, hashFrame, parseCommitHeader } from "./commit_frame.ts";
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
    const headerBytes = await this.#readHeader();
    const header = headerBytes === null ? null : this.#parseHeader(headerBytes);
    if (headerBytes === null || header === null) return this.#stop("no commit header");
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

  /** Returns the length of the header line, including its LF; null if no line ends in range. */
  async #readHeader(): Promise<number | null> {
    for (let searchedBytes = 0; searchedBytes <= COMMIT_HEADER_BYTES_MAX;) {
      const filled = this.#buffer.subarray(0, this.#filled);
      const newline = filled.indexOf(LF, this.#start + searchedBytes);
      if (newline >= 0) return newline + 1 - this.#start;
      searchedBytes = this.#unreadBytes;
      if (!(await this.#fill(searchedBytes + 1))) return null;
    }
    return null;
  }

  #parseHeader(headerBytes: number): CommitHeader | null {
    if (headerBytes > COMMIT_HEADER_BYTES_MAX) return null;
    const header = parseCommitHeader(this.#buffer, this.#start, this.#start + headerBytes - 1);
    return header === null || header.commit.bytes > COMMIT_BODY_BYTES_MAX ? null : header;
  }

  get #unreadBytes(): number {
    return this.#filled - this.#start;
  }

  /** Buffers at least `wantedBytes`; returns false if the range or the file ends first. */
  async #fill(wantedBytes: number): Promise<boolean> {
    this.#makeRoom(wantedBytes);
    while (this.#unreadBytes < wantedBytes) {
      const position = this.endBytes + this.#unreadBytes;
      const end = Math.min(this.#buffer.length, this.#filled + this.#sizeBytes - position);
      const readBytes = await this.#file.read(this.#buffer.subarray(this.#filled, end), position);
      if (readBytes === 0) return false;
      this.#filled += readBytes;
    }
    return true;
  }

  /** Moves the unread bytes to the start of a buffer of at least `wantedBytes`. */
  #makeRoom(wantedBytes: number): void {
    const unread = this.#buffer.subarray(this.#start, this.#filled);
    if (wantedBytes > this.#buffer.length) {
      this.#buffer = Buffer.allocUnsafeSlow(wantedBytes + CHUNK_BYTES);
    }
    this.#buffer.set(unread);
    this.#start = 0;
    this.#filled = unread.length;
  }

  #stop(fault: string): null {
    this.fault = fault;
    return null;
  }
}

/**
 * Yields the commits with events in [startBytes, sizeBytes) of a file.
 * @param path path of the file, for errors.
 * @throws {CorruptLogError} while iterating, at an invalid commit.
 */
export async function* readCommits(
  file: StorageFile,
  startBytes: number,
  sizeBytes: number,
  path: string,
): AsyncGenerator<WholeCommit, void> {
  const reader = new CommitReader(file, startBytes, sizeBytes);
  for (let next = await reader.next(); next !== null; next = await reader.next()) {
    if (next.commit.batches.length > 0) yield next;
  }
  if (reader.fault !== null) {
    throw new CorruptLogError(`${path}: corrupt at byte ${reader.endBytes}: ${reader.fault}`);
  }
}
