/**
 * Sparse index for a commit file. It has one entry for each block of about 64 KiB: the first event,
 * a filter over the record keys, and the CRC-32 of the bytes. The index takes a few bytes per
 * event. With it, a replay page costs the same at any offset, a replay of one key reads few blocks,
 * and bytes that were altered on disk are not served.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { assert } from "../../assert.ts";
import { firstIndex } from "../../first_index.ts";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { KeyFilter } from "../line/key_filter.ts";
import { eventLineEnd, LF, viewFor } from "../line/line_bytes.ts";
import { lineEventId, lineRecordKey } from "../line/stored_line.ts";

/** A block ends with the line that reaches this size. Four blocks of typical lines fit a read. */
const INDEX_INTERVAL_BYTES: number = 62 * 1024;

/** Complete lines, at bytes [start, end) of the file. */
export interface Block {
  start: number;
  end: number;
  /** CRC-32 of these bytes. */
  crc: number;
  /** Last event in the block; "" if it has none. */
  lastEventId: string;
}

/** A block whose end is the start of the next one. */
interface IndexEntry extends Omit<Block, "end"> {
  /** First event id in the block; for the first block "", which sorts before all ids. */
  eventId: string;
  keys: KeyFilter;
}

/**
 * Size of a block's filter; 256 KiB for a full tail. The false-positive rate is one in 5,000 for a
 * block of 80 typical events, and one in 60 for a block of 200 events of minimum size.
 */
const KEY_FILTER_BYTES = 256;
/** Spreads the bits of a CRC-32 (Knuth, The Art of Computer Programming, 6.4). */
const SPREAD = 0x9e3779b1;

/** Approximate memory for an entry. */
const ENTRY_BYTES = 512;

export class SparseIndex {
  readonly #entries: IndexEntry[] = [newEntry("", 0)];
  /** Current end of the last block. */
  #endBytes = 0;

  get sizeBytes(): number {
    return this.#entries.length * ENTRY_BYTES;
  }

  /** Adds the next commit, whose event lines start at `linesStart` in `frame`. */
  add(frame: Buffer, linesStart: number): void {
    const offset = this.#endBytes;
    for (let indexed = 0; indexed < frame.length;) {
      const last = this.#entries.at(-1)!;
      const due = Math.max(last.start + INDEX_INTERVAL_BYTES - offset, linesStart);
      // The first line that starts at or after the offset where the next block is due.
      const start = due === linesStart ? due : frame.indexOf(LF, due - 1) + 1;
      const isNext = due < frame.length && start < frame.length;
      const end = isNext ? start : frame.length;
      last.crc = crc32(frame.subarray(indexed, end), last.crc);
      addLines(last, frame.subarray(Math.max(indexed, linesStart), end));
      if (isNext) {
        const entry = newEntry(lineEventId(frame, start), offset + start);
        assert(last.eventId < entry.eventId, "blocks must be in order");
        this.#entries.push(entry);
      }
      indexed = end;
    }
    this.#endBytes += frame.length;
  }

  /** Returns the start of the block with the first event after `after`, or of the one before. */
  seek(after: string | undefined): number {
    if (after === undefined) return 0;
    const later = firstIndex(this.#entries.length, (i) => this.#entries[i]!.eventId > after);
    return this.#entries[Math.max(later - 1, 0)]!.start;
  }

  /** Returns the first offset at or after `position` whose block may contain a record key. */
  seekKey(position: number, key: number): number {
    for (let i = this.#blockAt(position); i < this.#entries.length; i++) {
      const { keys, start } = this.#entries[i]!;
      if (keys.mayHold(upperWord(key), key)) return Math.max(position, start);
    }
    return this.#endBytes;
  }

  /** Returns the blocks for one read of about `sizeBytes`, from the block that holds `position`. */
  blocks(position: number, sizeBytes: number): Block[] {
    assert(position < this.#endBytes, "a block must be within the file");
    const first = this.#blockAt(position);
    const readStart = this.#entries[first]!.start;
    const blocks: Block[] = [];
    for (let i = first; i < this.#entries.length; i++) {
      const { start, crc, lastEventId } = this.#entries[i]!;
      const end = this.#entries[i + 1]?.start ?? this.#endBytes;
      const isEnough = start - readStart >= sizeBytes || end - readStart > READ_CHUNK_BYTES;
      if (i > first && isEnough) break;
      blocks.push({ start, end, crc, lastEventId });
    }
    return blocks;
  }

  #blockAt(position: number): number {
    return firstIndex(this.#entries.length, (i) => this.#entries[i]!.start > position) - 1;
  }
}

function newEntry(eventId: string, start: number): IndexEntry {
  const keys = new KeyFilter(Buffer.alloc(KEY_FILTER_BYTES));
  return { eventId, lastEventId: "", start, crc: 0, keys };
}

/** Adds complete event lines: their keys, and the last event. */
function addLines(entry: IndexEntry, lines: Buffer): void {
  const view = viewFor(lines);
  let lastStart = 0;
  for (let start = 0; start < lines.length; start = eventLineEnd(view, start)) {
    const key = recordKeyHash(lineRecordKey(lines, start));
    entry.keys.add(upperWord(key), key);
    lastStart = start;
  }
  if (lines.length > 0) entry.lastEventId = lineEventId(lines, lastStart);
}

/** Hashes a key as it is spelled in lines. The filters stay in memory, so a weak hash suffices. */
export const recordKeyHash = (spelled: Uint8Array): number => crc32(spelled);

function upperWord(key: number): number {
  return Math.imul(key, SPREAD) >>> 0;
}
