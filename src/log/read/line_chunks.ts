/** Reads a snapshot from oldest to newest, file after file, in chunks of whole lines. */
import type { Buffer } from "node:buffer";
import type { LineSource, LinesWanted, LogFile, LogSnapshot } from "./snapshot.ts";

export class LineChunks implements LineSource {
  readonly #files: readonly LogFile[];
  readonly #wanted: LinesWanted;
  #nextFile = 0;
  #lines: LineSource | null = null;

  constructor(snapshot: LogSnapshot, wanted: LinesWanted) {
    const { after } = wanted;
    this.#files = after === undefined
      ? snapshot.files
      : snapshot.files.filter((file) => file.lastEventId > after);
    this.#wanted = wanted;
  }

  async next(): Promise<Buffer | null> {
    for (;;) {
      this.#lines ??= this.#files[this.#nextFile++]?.lines(this.#wanted) ?? null;
      if (this.#lines === null) return null;
      const lines = await this.#lines.next();
      if (lines !== null) return lines;
      this.#lines = null;
    }
  }
}
