/**
 * A tail or pending file as a snapshot sees it: up to an end that does not move. The file may be
 * sealed while it is read, at any time: then the reader goes on in the segments, after the last
 * event that it has been given. Both give the same lines, byte for byte.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { firstLineAfter, isHeaderLine, lineEventId } from "../line/stored_line.ts";
import { LineChunks } from "../read/line_chunks.ts";
import type { LineSource, LinesWanted, LogFile } from "../read/snapshot.ts";
import type { CommitFile } from "./commit_file.ts";
import type { RecentCommits } from "./recent_commits.ts";

const LF = 0x0a;
const NO_LINES = Buffer.alloc(0);

export class CommitFileView implements LogFile {
  readonly path: string;
  readonly lastEventId: string;
  readonly streams = null;
  readonly #target: CommitFile;
  readonly #recent: RecentCommits | null;
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
    this.#endBytes = target.endBytes;
  }

  lines(wanted: LinesWanted): LineSource {
    const { after } = wanted;
    // What is past the end is of later events than any that is asked for.
    const recentStart = after === undefined ? null : this.#recent?.seek(after) ?? null;
    const start = recentStart ?? this.#target.index.seek(after);
    const range = { start, end: this.#endBytes, lastEventId: this.lastEventId };
    return new CommitLines(this.#target, this.#recent, range, wanted);
  }
}

/** Bytes of a file, both ends where a line starts, and the last event in them. */
interface Range {
  start: number;
  end: number;
  lastEventId: string;
}

class CommitLines implements LineSource {
  readonly #target: CommitFile;
  readonly #recent: RecentCommits | null;
  readonly #range: Range;
  /** What of the range is still wanted. */
  #wanted: LinesWanted;
  /** Place of the next read, where a line starts. */
  #position: number;
  #readBytes: number;
  /** The segments, once the reader has gone over to them. */
  #sealed: LineChunks | null = null;

  constructor(
    target: CommitFile,
    recent: RecentCommits | null,
    range: Range,
    wanted: LinesWanted,
  ) {
    this.#target = target;
    this.#recent = recent;
    this.#range = range;
    this.#wanted = wanted;
    this.#position = range.start;
    this.#readBytes = wanted.firstReadBytes;
  }

  async next(): Promise<Buffer | null> {
    while (this.#position < this.#range.end) {
      const { sealedIn } = this.#target;
      if (sealedIn !== null) return await this.#readSealed(sealedIn);
      const lines = await this.#readLines();
      if (lines.length > 0) {
        // Before the caller has them, who may change them.
        this.#wanted = { ...this.#wanted, after: lastEventIdOf(lines) ?? this.#wanted.after };
        return lines;
      }
    }
    return null;
  }

  /** Whole lines; none when the read was too short for one: the next is longer. */
  async #readLines(): Promise<Buffer> {
    const wantedBytes = Math.min(this.#readBytes, this.#range.end - this.#position);
    const chunk = this.#wanted.memory.take(wantedBytes);
    const readBytes = this.#recent?.read(chunk, this.#position)
      ? wantedBytes
      : await this.#target.read(chunk, this.#position);
    const chunkEnd = this.#position + readBytes;
    if (readBytes < wantedBytes) {
      throw this.#fault(`ends at byte ${chunkEnd}, before the ${this.#range.end} bytes`);
    }
    const linesBytes = chunk.lastIndexOf(LF) + 1;
    if (linesBytes === 0 && chunkEnd === this.#range.end) {
      throw this.#fault(`does not end a line at byte ${chunkEnd}, the end of what`);
    }
    this.#position += linesBytes;
    this.#readBytes = linesBytes > 0 ? READ_CHUNK_BYTES : 2 * wantedBytes;
    return linesBytes > 0 ? chunk.subarray(0, linesBytes) : NO_LINES;
  }

  /** Lines of the segments, up to the last event of the range. */
  async #readSealed(segments: readonly LogFile[]): Promise<Buffer | null> {
    const { lastEventId } = this.#range;
    this.#sealed ??= new LineChunks({ files: segments, frontier: lastEventId }, this.#wanted);
    const lines = await this.#sealed.next();
    if (lines === null || lastEventIdOf(lines)! < lastEventId) return lines;
    this.#position = this.#range.end;
    const end = firstLineAfter(lines, lastEventId);
    return end === 0 ? null : lines.subarray(0, end);
  }

  #fault(what: string): Error {
    return new Error(`${this.#target.path}: ${what} that are committed`);
  }
}

/** Last event of whole lines, headers among them; null when there is none. */
function lastEventIdOf(lines: Buffer): string | null {
  for (let end = lines.length; end > 0;) {
    const start = lines.lastIndexOf(LF, end - 2) + 1;
    if (!isHeaderLine(lines, start)) return lineEventId(lines, start);
    end = start;
  }
  return null;
}
