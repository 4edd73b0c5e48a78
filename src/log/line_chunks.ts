/**
 * Reads a snapshot from oldest to newest in chunks of whole lines, headers and events, each into a
 * buffer of its own that the caller may change and keep.
 */
import { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../limits.ts";
import type { FileSnapshot, LogSnapshot } from "./snapshot.ts";

const LF = 0x0a;

export class LineChunks {
  readonly #files: readonly FileSnapshot[];
  readonly #after: string | undefined;
  #fileNumber = 0;
  /** Place of the next read, where a line starts; null before a file is entered. */
  #position: number | null = null;
  #readBytes: number;

  /**
   * @param after the chunks hold all events after this id; a few before it may come first.
   * @param firstReadBytes size of the first read; later ones have READ_CHUNK_BYTES.
   */
  constructor(snapshot: LogSnapshot, after?: string, firstReadBytes = READ_CHUNK_BYTES) {
    this.#files = snapshot.files;
    this.#after = after;
    this.#readBytes = firstReadBytes;
  }

  /** The next lines, the last one with its LF; null at the end of the snapshot. */
  async next(): Promise<Buffer | null> {
    for (;;) {
      const file = this.#files[this.#fileNumber];
      if (file === undefined) return null;
      this.#position ??= startOf(file, this.#after);
      if (this.#position >= file.endBytes) {
        this.#fileNumber += 1;
        this.#position = null;
        continue;
      }
      const lines = await this.#readLines(file, this.#position);
      this.#position += lines.length;
      if (lines.length > 0) return lines;
    }
  }

  /**
   * Whole lines from `position` on; none when the read was too short for one: the next is longer.
   */
  async #readLines(file: FileSnapshot, position: number): Promise<Buffer> {
    const wantedBytes = Math.min(this.#readBytes, file.endBytes - position);
    const chunk = Buffer.allocUnsafeSlow(wantedBytes);
    const readBytes = file.recent?.read(chunk, position)
      ? wantedBytes
      : await file.file.read(chunk, position);
    if (readBytes < wantedBytes) {
      throw new Error(
        `${file.path}: ends at byte ${position + readBytes}, before the ${file.endBytes} bytes ` +
          "that are committed",
      );
    }
    const linesBytes = chunk.lastIndexOf(LF) + 1;
    if (linesBytes === 0 && position + wantedBytes === file.endBytes) {
      throw new Error(`${file.path}: damaged: the line at byte ${position} does not end`);
    }
    this.#readBytes = linesBytes === 0 ? 2 * wantedBytes : READ_CHUNK_BYTES;
    return chunk.subarray(0, linesBytes);
  }
}

/** Offset of a line at or before the first event after `after`; the end where there is none. */
function startOf(file: FileSnapshot, after: string | undefined): number {
  if (after === undefined) return 0;
  if (file.lastEventId <= after) return file.endBytes;
  return file.recent?.seek(after) ?? file.index.seek(after);
}
