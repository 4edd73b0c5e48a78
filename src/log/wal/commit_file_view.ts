/**
 * A snapshot's view of a tail or pending file, up to a fixed end. The file may be sealed while it
 * is being read; the reader then continues in the segments, after the last event it returned. The
 * segments contain the same lines, byte for byte.
 */
import type { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { assert } from "../../assert.ts";
import { spelledText } from "../line/line_bytes.ts";
import { firstLineAfter, isHeaderLine, lineEventId } from "../line/stored_line.ts";
import { type Hash64, xxhash64 } from "../parquet/xxhash64.ts";
import { type LineSource, type LinesWanted, type LogFile, readLines } from "../read/snapshot.ts";
import { CorruptLogError } from "../storage/errors.ts";
import type { CommitFile } from "./commit_file.ts";
import { CachedReads } from "./cached_reads.ts";
import type { Block } from "./sparse_index.ts";

const LF = 0x0a;
/** Read size if the following blocks are not wanted. */
const ONE_BLOCK_BYTES = 1;

/** Shared by all readers, which have one budget for blocking reads. */
const cachedReads = new CachedReads();

/** Returns a view of a file that has at least one event. */
export function viewOf(target: CommitFile): LogFile {
  const { path, lastEventId, endBytes } = target;
  assert(lastEventId !== null, "a file in a snapshot must have events");
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
  /** The only record key wanted; null for any. */
  readonly #key: Hash64 | null;
  /** The segments, once the reader has switched to them. */
  #sealed: AsyncGenerator<Buffer, void> | null = null;

  constructor(target: CommitFile, range: RangeEnd, wanted: LinesWanted) {
    const { after, filter } = wanted;
    this.#target = target;
    this.#range = range;
    this.#wanted = wanted;
    // If the start is past the end of the range, the range contains no requested events.
    const recentStart = after === undefined ? null : target.recent?.seek(after) ?? null;
    this.#position = recentStart ?? target.index.seek(after);
    const { recordKey } = filter;
    this.#key = recordKey === undefined ? null : xxhash64(spelledText(recordKey));
  }

  async next(): Promise<Buffer | null> {
    const { sealedIn, index } = this.#target;
    if (this.#key !== null) this.#position = index.seekKey(this.#position, this.#key);
    if (this.#position >= this.#range.end) return null;
    if (sealedIn !== null) return await this.#readSealed(sealedIn);
    const lines = await this.#readLines();
    // Read the last id now, since the caller may overwrite the lines.
    this.#wanted = { ...this.#wanted, after: lastEventIdOf(lines) ?? this.#wanted.after };
    return lines;
  }

  /** Returns the lines in the next blocks. Checks the CRCs of blocks read from the file. */
  async #readLines(): Promise<Buffer> {
    const { recent, index } = this.#target;
    const position = this.#position;
    const wantedBytes = this.#key === null ? this.#wanted.readBytes() : ONE_BLOCK_BYTES;
    const blocks = index.blocks(position, wantedBytes);
    const end = Math.min(blocks.at(-1)!.end, this.#range.end);
    const lines = this.#wanted.memory.take(end - position);
    if (recent?.read(lines, position)) {
      this.#position = end;
      return lines;
    }
    const [{ start }] = blocks as [Block];
    const whole = await this.#readBlocks(blocks);
    this.#position = Math.min(end, start + whole.length);
    return whole.subarray(position - start, this.#position - start);
  }

  /** Reads blocks until one is damaged. @throws {CorruptLogError} if the first one is damaged. */
  async #readBlocks(blocks: readonly Block[]): Promise<Buffer> {
    const { file, path } = this.#target;
    const [{ start }] = blocks as [Block];
    const chunk = this.#wanted.memory.take(blocks.at(-1)!.end - start);
    const readBytes = await cachedReads.read(file, chunk, start);
    const damaged = blocks.find((block) =>
      block.end - start > readBytes ||
      crc32(chunk.subarray(block.start - start, block.end - start)) !== block.crc
    );
    if (damaged === undefined) return chunk;
    if (damaged.start > start) return chunk.subarray(0, damaged.start - start);
    const what = damaged.end - start > readBytes
      ? `the file ends at byte ${start + readBytes}, before the end of the block`
      : "the block does not match its CRC-32";
    throw new CorruptLogError(`${path}: corrupt at byte ${start} (to ${damaged.end}): ${what}`);
  }

  /** Returns lines from the segments, up to the last event in the range. */
  async #readSealed(segments: readonly LogFile[]): Promise<Buffer | null> {
    const { lastEventId, end: rangeEnd } = this.#range;
    this.#sealed ??= readLines(segments, this.#wanted);
    const lines = (await this.#sealed.next()).value ?? null;
    if (lines === null || lastEventIdOf(lines)! < lastEventId) return lines;
    this.#position = rangeEnd;
    const end = firstLineAfter(lines, lastEventId);
    return end === 0 ? null : lines.subarray(0, end);
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
