/**
 * A snapshot's view of a tail or pending file, up to a fixed end. The file may be sealed while it
 * is being read; the reader then continues in the segments, after the last event it returned. Both
 * contain the same lines, byte for byte.
 */
import type { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { firstLineAfter, isHeaderLine, lineEventId } from "../line/stored_line.ts";
import { type LineSource, type LinesWanted, type LogFile, readLines } from "../read/snapshot.ts";
import type { CommitFile } from "./commit_file.ts";

const LF = 0x0a;

/** Returns a view of a file that has at least one event. */
export function viewOf(target: CommitFile): LogFile {
  const { path, lastEventId, endBytes } = target;
  assert(lastEventId !== null, "a file in a snapshot has events");
  return {
    path,
    lastEventId,
    lines: (wanted) => new CommitLines(target, { end: endBytes, lastEventId }, wanted),
  };
}

/** The end of a read: the offset after a line, and the last event before it. */
interface RangeEnd {
  end: number;
  lastEventId: string;
}

class CommitLines implements LineSource {
  readonly #target: CommitFile;
  readonly #range: RangeEnd;
  /** The part of the range still to be read. */
  #wanted: LinesWanted;
  /** Offset of the next read, where a line starts. */
  #position: number;
  #readBytes: number;
  /** The segments, once the reader has switched to them. */
  #sealed: AsyncGenerator<Buffer, void> | null = null;

  constructor(target: CommitFile, range: RangeEnd, wanted: LinesWanted) {
    const { after, firstReadBytes } = wanted;
    this.#target = target;
    this.#range = range;
    this.#wanted = wanted;
    // A start past the end of the range means that the range has no wanted event.
    const recentStart = after === undefined ? null : target.recent?.seek(after) ?? null;
    this.#position = recentStart ?? target.index.seek(after);
    this.#readBytes = firstReadBytes;
  }

  async next(): Promise<Buffer | null> {
    while (this.#position < this.#range.end) {
      const { sealedIn } = this.#target;
      if (sealedIn !== null) return await this.#readSealed(sealedIn);
      const lines = await this.#readLines();
      if (lines !== null) {
        // Must come first: the caller may overwrite the lines.
        this.#wanted = { ...this.#wanted, after: lastEventIdOf(lines) ?? this.#wanted.after };
        return lines;
      }
    }
    return null;
  }

  /** Whole lines; null if the read was too short for one, in which case the next is longer. */
  async #readLines(): Promise<Buffer | null> {
    const { recent, file } = this.#target;
    const { end } = this.#range;
    const wantedBytes = Math.min(this.#readBytes, end - this.#position);
    const chunk = this.#wanted.memory.take(wantedBytes);
    const readBytes = recent?.read(chunk, this.#position)
      ? wantedBytes
      : await file.read(chunk, this.#position);
    const chunkEnd = this.#position + readBytes;
    if (readBytes < wantedBytes) {
      throw this.#fault(`truncated at byte ${chunkEnd} of ${end} committed bytes`);
    }
    const linesBytes = chunk.lastIndexOf(LF) + 1;
    if (linesBytes === 0 && chunkEnd === end) {
      throw this.#fault(`no line ends at byte ${chunkEnd}, where a commit ends`);
    }
    this.#position += linesBytes;
    this.#readBytes = linesBytes > 0 ? READ_CHUNK_BYTES : 2 * wantedBytes;
    return linesBytes > 0 ? chunk.subarray(0, linesBytes) : null;
  }

  /** Returns lines from the segments, up to the last event of the range. */
  async #readSealed(segments: readonly LogFile[]): Promise<Buffer | null> {
    const { lastEventId, end: rangeEnd } = this.#range;
    this.#sealed ??= readLines(segments, this.#wanted);
    const lines = (await this.#sealed.next()).value ?? null;
    if (lines === null || lastEventIdOf(lines)! < lastEventId) return lines;
    this.#position = rangeEnd;
    const end = firstLineAfter(lines, lastEventId);
    return end === 0 ? null : lines.subarray(0, end);
  }

  #fault(what: string): Error {
    return new Error(`${this.#target.path}: ${what}`);
  }
}

/** Returns the last event in complete lines, which may include headers; null if there is none. */
function lastEventIdOf(lines: Buffer): string | null {
  for (let end = lines.length; end > 0;) {
    const start = lines.lastIndexOf(LF, end - 2) + 1;
    if (!isHeaderLine(lines, start)) return lineEventId(lines, start);
    end = start;
  }
  return null;
}
