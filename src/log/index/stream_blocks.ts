/**
 * Blocks of the stream tree of an index (docs/format.md): sorted rows whose keys and event ids omit
 * what they share with the row before, and a CRC-32. A row of a leaf has the count and the last
 * event of a stream or source; a row of an inner block has the last key and the place of a child.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { NAME_BYTES_MAX } from "../../limits.ts";
import { UUID_BYTES, uuidText } from "../line/line_bytes.ts";
import { writeHex } from "../read/key_table.ts";
import { type StreamEntry, streamKey } from "../read/stream_counts.ts";
import { CRC_BYTES, IndexError } from "./index_format.ts";

/** A block ends once it reaches this size. */
const BLOCK_BYTES = 4 * 1024;
/** Lengths, two names and a space, a count and an id, or two sizes. */
const ROW_BYTES_MAX = 2 * NAME_BYTES_MAX + 64;
export const STREAM_BLOCK_BYTES_MAX: number = BLOCK_BYTES + ROW_BYTES_MAX + CRC_BYTES;

/** A block of the tree. */
export interface StreamBlock {
  /** Offset in the index. */
  start: number;
  bytes: number;
}

/** A row of an inner block. */
export type ChildRow = StreamBlock & { key: string };

/** Returns the key for a whole source, which sorts before those for its streams. */
export function sourceKey(source: string): string {
  return streamKey(source, "");
}

export function isSourceKey(key: string): boolean {
  return key.endsWith(" ");
}

/** Encodes one block after another. */
export class BlockEncoder {
  readonly #bytes = Buffer.allocUnsafeSlow(STREAM_BLOCK_BYTES_MAX);
  #id = Buffer.alloc(UUID_BYTES);
  #lastId = Buffer.alloc(UUID_BYTES);
  #end = 0;
  lastKey = "";

  get isFull(): boolean {
    return this.#end >= BLOCK_BYTES;
  }

  addStream({ key, events, lastEventId }: StreamEntry): void {
    this.#putKey(key);
    this.#putNumber(events);
    const id = this.#id;
    writeHex(id, 0, lastEventId);
    let shared = 0;
    while (shared < UUID_BYTES && id[shared] === this.#lastId[shared]) shared += 1;
    this.#bytes[this.#end++] = shared;
    this.#bytes.set(id.subarray(shared), this.#end);
    this.#end += UUID_BYTES - shared;
    this.#id = this.#lastId;
    this.#lastId = id;
  }

  addChild({ key, start, bytes }: ChildRow): void {
    this.#putKey(key);
    this.#putNumber(start);
    this.#putNumber(bytes);
  }

  /** Returns a copy of the block and starts the next one. */
  finish(): Buffer {
    const end = this.#end;
    this.#bytes.writeUInt32LE(crc32(this.#bytes.subarray(0, end)), end);
    this.#end = 0;
    this.lastKey = "";
    this.#lastId.fill(0);
    return Buffer.from(this.#bytes.subarray(0, end + CRC_BYTES));
  }

  #putKey(key: string): void {
    const most = Math.min(key.length, this.lastKey.length);
    let shared = 0;
    while (shared < most && key.charCodeAt(shared) === this.lastKey.charCodeAt(shared)) shared += 1;
    this.#putNumber(shared);
    this.#putNumber(key.length - shared);
    this.#end += this.#bytes.write(key.slice(shared), this.#end, "latin1");
    this.lastKey = key;
  }

  /** A varint: 7 bits a byte, the lowest first; the top bit is set in all bytes but the last. */
  #putNumber(value: number): void {
    for (; value >= 0x80; value = Math.floor(value / 0x80)) {
      this.#bytes[this.#end++] = value % 0x80 | 0x80;
    }
    this.#bytes[this.#end++] = value;
  }
}

/** @throws {IndexError} */
export function decodeStreams(block: Buffer): StreamEntry[] {
  const rows = new BlockDecoder(block);
  const id = Buffer.alloc(UUID_BYTES);
  return rows.decode((key) => {
    const events = rows.takeNumber();
    const shared = rows.takeNumber();
    const end = rows.at + UUID_BYTES - shared;
    if (shared > UUID_BYTES || end > block.length) throw malformed();
    block.copy(id, shared, rows.at, end);
    rows.at = end;
    return { key, events, lastEventId: uuidText(id) };
  });
}

/** @throws {IndexError} */
export function decodeChildren(block: Buffer): ChildRow[] {
  const rows = new BlockDecoder(block);
  return rows.decode((key) => ({ key, start: rows.takeNumber(), bytes: rows.takeNumber() }));
}

class BlockDecoder {
  readonly #bytes: Buffer;
  readonly #end: number;
  at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#end = bytes.length - CRC_BYTES;
    const isWhole = this.#end >= 0 &&
      crc32(bytes.subarray(0, this.#end)) === bytes.readUInt32LE(this.#end);
    if (!isWhole) throw new IndexError("does not match its CRC-32");
  }

  decode<Row>(takeRow: (key: string) => Row): Row[] {
    const rows: Row[] = [];
    for (let key = ""; this.at < this.#end;) {
      const shared = this.takeNumber();
      const length = this.takeNumber();
      key = key.slice(0, shared) + this.#bytes.toString("latin1", this.at, this.at + length);
      this.at += length;
      rows.push(takeRow(key));
    }
    if (this.at !== this.#end) throw malformed();
    return rows;
  }

  takeNumber(): number {
    let value = 0;
    for (let scale = 1;; scale *= 0x80) {
      const byte = this.#bytes[this.at++];
      if (byte === undefined || scale > Number.MAX_SAFE_INTEGER) throw malformed();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  }
}

function malformed(): IndexError {
  return new IndexError("has a malformed row");
}
