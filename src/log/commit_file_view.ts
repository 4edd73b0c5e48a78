/**
 * A tail or pending file as a snapshot sees it: from where the segments end, up to an end that does
 * not move.
 */
import { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import { READ_CHUNK_BYTES } from "../limits.ts";
import type { CommitFile } from "./commit_file.ts";
import type { RecentCommits } from "./recent_commits.ts";
import type { LineSource, LinesWanted, LogFile } from "./snapshot.ts";

const LF = 0x0a;

export class CommitFileView implements LogFile {
  readonly path: string;
  readonly lastEventId: string;
  readonly streams = null;
  readonly #target: CommitFile;
  readonly #recent: RecentCommits | null;
  readonly #startBytes: number;
  readonly #endBytes: number;

  /**
   * @param target holds at least one event.
   * @param recent what of the file is in memory too; it goes on with the file.
   */
  constructor(target: CommitFile, recent: RecentCommits | null) {
    assert(target.lastEventId !== null, "a file of a snapshot holds events");
    this.path = target.path;
    this.lastEventId = target.lastEventId;
    this.#target = target;
    this.#recent = recent;
    this.#startBytes = target.startBytes;
    this.#endBytes = target.endBytes;
  }

  lines({ after, firstReadBytes }: LinesWanted): LineSource {
    // What is past the end is of later events than any that is asked for.
    const recentStart = after === undefined ? null : this.#recent?.seek(after) ?? null;
    const start = Math.max(this.#startBytes, recentStart ?? this.#target.index.seek(after));
    const range = { start, end: this.#endBytes, firstReadBytes };
    return new CommitLines(this.#target, this.#recent, range);
  }
}

class CommitLines implements LineSource {
  readonly #target: CommitFile;
  readonly #recent: RecentCommits | null;
  readonly #end: number;
  /** Place of the next read, where a line starts. */
  #position: number;
  #readBytes: number;

  constructor(
    target: CommitFile,
    recent: RecentCommits | null,
    range: { start: number; end: number; firstReadBytes: number },
  ) {
    this.#target = target;
    this.#recent = recent;
    this.#position = range.start;
    this.#end = range.end;
    this.#readBytes = range.firstReadBytes;
  }

  async next(): Promise<Buffer | null> {
    while (this.#position < this.#end) {
      const lines = await this.#readLines();
      if (lines.length > 0) return lines;
    }
    return null;
  }

  /** Whole lines; none when the read was too short for one: the next is longer. */
  async #readLines(): Promise<Buffer> {
    const wantedBytes = Math.min(this.#readBytes, this.#end - this.#position);
    const chunk = Buffer.allocUnsafeSlow(wantedBytes);
    const readBytes = this.#recent?.read(chunk, this.#position)
      ? wantedBytes
      : await this.#target.file.read(chunk, this.#position);
    const chunkEnd = this.#position + readBytes;
    if (readBytes < wantedBytes) {
      throw this.#fault(`ends at byte ${chunkEnd}, before the ${this.#end} bytes`);
    }
    const linesBytes = chunk.lastIndexOf(LF) + 1;
    if (linesBytes === 0 && chunkEnd === this.#end) {
      throw this.#fault(`does not end a line at byte ${chunkEnd}, the end of what`);
    }
    this.#readBytes = linesBytes === 0 ? 2 * wantedBytes : READ_CHUNK_BYTES;
    this.#position += linesBytes;
    return chunk.subarray(0, linesBytes);
  }

  #fault(what: string): Error {
    return new Error(`${this.#target.path}: ${what} that are committed`);
  }
}
