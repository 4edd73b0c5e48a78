/**
 * How a reader of a commit file goes on when the file has been sealed: in the segments, after the
 * last event that it has been given, up to the end that the file had for it. Both give the same
 * lines, byte for byte.
 */
import type { Buffer } from "node:buffer";
import { isHeaderLine } from "./commit_frame.ts";
import { LineChunks } from "../read/line_chunks.ts";
import type { LineSource, LinesWanted, LogFile } from "../read/snapshot.ts";
import { firstLineAfter, lineEventId } from "../line/stored_line.ts";

const LF = 0x0a;

/** Last event of whole lines, headers among them; null when there is none. */
export function lastEventIdOf(lines: Buffer): string | null {
  for (let end = lines.length; end > 0;) {
    const start = lines.lastIndexOf(LF, end - 2) + 1;
    if (!isHeaderLine(lines, start)) return lineEventId(lines, start);
    end = start;
  }
  return null;
}

export class SealedLines implements LineSource {
  readonly #chunks: LineChunks;
  readonly #lastEventId: string;
  #ended = false;

  /**
   * @param segments from oldest to newest.
   * @param lastEventId where the reader's file ends, inclusive.
   */
  constructor(segments: readonly LogFile[], wanted: LinesWanted, lastEventId: string) {
    this.#chunks = new LineChunks({ files: segments, frontier: lastEventId }, wanted);
    this.#lastEventId = lastEventId;
  }

  async next(): Promise<Buffer | null> {
    const lines = this.#ended ? null : await this.#chunks.next();
    if (lines === null) return null;
    if (lastEventIdOf(lines)! < this.#lastEventId) return lines;
    this.#ended = true;
    const end = firstLineAfter(lines, this.#lastEventId);
    return end === 0 ? null : lines.subarray(0, end);
  }
}
