/**
 * Sparse index of a commit file. It has one entry for each block of about 64 KiB: the first event,
 * a filter of the record keys, and the CRC-32 of the bytes. It takes a few bytes per event. A
 * replay page costs the same at any offset, a replay of one key reads few blocks, and bytes that
 * were altered on disk are not served.
 */
import type { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { assert } from "../../assert.ts";
import { firstIndex } from "../../first_index.ts";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { lineEventId } from "../line/stored_line.ts";
import { type BloomFilter, mayContain } from "../parquet/bloom_filter.ts";
import type { Hash64 } from "../parquet/xxhash64.ts";
import { addKeys, emptyKeyFilter } from "./key_filter.ts";

/** A block ends with the line that reaches this size. A read fits four blocks of typical lines. */
export const INDEX_INTERVAL_BYTES: number = 62 * 1024;

const LF = 0x0a;

/** Complete lines, at bytes [start, end) of the file. */
export interface Block {
  start: number;
  end: number;
  /** CRC-32 of these bytes. */
  crc: number;
}

export class SparseIndex {
  /** First event id of each block, except that the first block has "", which sorts before all. */
  readonly #eventIds: string[] = [""];
  readonly #starts: number[] = [0];
  readonly #crcs: number[] = [0];
  readonly #keys: BloomFilter[] = [emptyKeyFilter()];
  /** Current end of the last block. */
  #endBytes = 0;

  /** Adds the next commit. Its event lines start at `linesStart` in `frame`. */
  add(frame: Buffer, linesStart: number): void {
    const offset = this.#endBytes;
    let added = 0;
    while (added < frame.length) {
      const due = Math.max(this.#starts.at(-1)! + INDEX_INTERVAL_BYTES - offset, linesStart);
      // The first line that starts at or after the offset where the next block is due.
      const start = due === linesStart ? due : frame.indexOf(LF, due - 1) + 1;
      const isNext = due < frame.length && start < frame.length;
      const end = isNext ? start : frame.length;
      const last = this.#crcs.length - 1;
      this.#crcs[last] = crc32(frame.subarray(added, end), this.#crcs[last]);
      addKeys(this.#keys[last]!, frame.subarray(Math.max(added, linesStart), end));
      if (isNext) this.#startBlock(offset + start, lineEventId(frame, start));
      added = end;
    }
    this.#endBytes = offset + frame.length;
  }

  /** Start of the block with the first event after `after`, or of the block that precedes it. */
  seek(after: string | undefined): number {
    if (after === undefined) return 0;
    const later = firstIndex(this.#eventIds.length, (i) => this.#eventIds[i]! > after);
    return this.#starts[Math.max(later - 1, 0)]!;
  }

  /** Returns the first offset from `position` on whose block may contain a record key. */
  seekKey(position: number, key: Hash64): number {
    const starts = this.#starts;
    for (let i = this.#blockAt(position); i < starts.length; i++) {
      if (mayContain(this.#keys[i]!, key)) return Math.max(position, starts[i]!);
    }
    return this.#endBytes;
  }

  /** Returns the blocks for one read of about `sizeBytes`, from the block that holds `position`. */
  blocks(position: number, sizeBytes: number): Block[] {
    assert(position < this.#endBytes, "a block is read within the file");
    const starts = this.#starts;
    const first = this.#blockAt(position);
    const blocks: Block[] = [];
    for (let i = first; i < starts.length; i++) {
      const end = starts[i + 1] ?? this.#endBytes;
      const isEnough = starts[i]! - starts[first]! >= sizeBytes ||
        end - starts[first]! > READ_CHUNK_BYTES;
      if (i > first && isEnough) break;
      blocks.push({ start: starts[i]!, end, crc: this.#crcs[i]! });
    }
    return blocks;
  }

  #blockAt(position: number): number {
    return firstIndex(this.#starts.length, (i) => this.#starts[i]! > position) - 1;
  }

  #startBlock(start: number, eventId: string): void {
    assert(this.#eventIds.at(-1)! < eventId, "the events of blocks increase");
    this.#eventIds.push(eventId);
    this.#starts.push(start);
    this.#crcs.push(0);
    this.#keys.push(emptyKeyFilter());
  }
}
