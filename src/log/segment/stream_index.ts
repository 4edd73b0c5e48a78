/**
 * The stream index for a segment (docs/format.md): event count and last event for each source and
 * each stream. It is a sorted table as in LevelDB: blocks of entries in byte order of their keys,
 * then an index with the last key of each block. A lookup reads the index and one block. Blocks and
 * index are JSON and end with a CRC-32.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { assert } from "../../assert.ts";
import { firstIndex } from "../../first_index.ts";
import { NAME_BYTES_MAX } from "../../limits.ts";
import { SegmentError } from "../storage/segment_error.ts";
import { type StreamEntry, streamKey } from "../read/stream_counts.ts";

/** A block ends once it reaches this size. */
const BLOCK_BYTES = 8 * 1024;
const CRC_BYTES = 4;
/** Maximum size of an entry: two names and a space, a count, an id, and JSON syntax. */
const ENTRY_BYTES_MAX = 2 * NAME_BYTES_MAX + 128;
/** Largest block that a reader accepts. */
export const STREAM_BLOCK_BYTES_MAX: number = BLOCK_BYTES + ENTRY_BYTES_MAX;

/** A row in a block: the key, then its values. */
type Row = [key: string, ...values: (number | string)[]];

export interface BlockPlace {
  lastKey: string;
  /** End offset, relative to the first block. The block starts where the previous one ends. */
  end: number;
}

/** Returns the key for a whole source, which sorts before those for its streams. */
export function sourceKey(source: string): string {
  return streamKey(source, "");
}

export function isSourceKey(key: string): boolean {
  return key.endsWith(" ");
}

/** Encodes sorted entries as blocks, and an index of the blocks. */
export function encodeStreamIndex(
  entries: Iterable<StreamEntry>,
): { stream_blocks: Buffer; stream_index: Buffer } {
  const blocks: Buffer[] = [];
  const places: Row[] = [];
  let rows: Row[] = [];
  let rowsBytes = 0;
  let end = 0;
  const endBlock = () => {
    const block = encodeRows(rows);
    assert(block.length <= STREAM_BLOCK_BYTES_MAX, "a block must be within the limit");
    end += block.length;
    blocks.push(block);
    places.push([rows.at(-1)![0], end]);
    rows = [];
    rowsBytes = 0;
  };
  for (const { key, events, lastEventId } of entries) {
    const row: Row = [key, events, lastEventId];
    rows.push(row);
    rowsBytes += JSON.stringify(row).length + 1;
    if (rowsBytes >= BLOCK_BYTES) endBlock();
  }
  if (rows.length > 0) endBlock();
  return { stream_blocks: Buffer.concat(blocks), stream_index: encodeRows(places) };
}

function encodeRows(rows: readonly Row[]): Buffer {
  const text = Buffer.from(JSON.stringify(rows));
  const crc = Buffer.alloc(CRC_BYTES);
  crc.writeUInt32LE(crc32(text));
  return Buffer.concat([text, crc]);
}

/** Decodes a block of entries. @throws {SegmentError} */
export function decodeStreamBlock(bytes: Buffer): StreamEntry[] {
  const rows = decodeRows(bytes, ["number", "string"]) as [string, number, string][];
  return rows.map(([key, events, lastEventId]) => ({ key, events, lastEventId }));
}

/** Decodes the index. @throws {SegmentError} */
export function decodeStreamIndex(bytes: Buffer): BlockPlace[] {
  const rows = decodeRows(bytes, ["number"]) as [string, number][];
  return rows.map(([lastKey, end]) => ({ lastKey, end }));
}

/** @param types types of the values after the key. */
function decodeRows(bytes: Buffer, types: readonly string[]): Row[] {
  const end = bytes.length - CRC_BYTES;
  if (end < 0 || crc32(bytes.subarray(0, end)) !== bytes.readUInt32LE(end)) {
    throw new SegmentError("does not match its CRC-32");
  }
  const rows: unknown = parse(bytes.toString("utf8", 0, end));
  const isRow = (row: unknown) =>
    Array.isArray(row) && row.length === 1 + types.length && typeof row[0] === "string" &&
    types.every((type, place) => typeof row[1 + place] === type);
  if (!Array.isArray(rows) || !rows.every(isRow)) throw new SegmentError("has a malformed entry");
  if (rows.some(([key], place) => place > 0 && key <= rows[place - 1][0])) {
    throw new SegmentError("has entries that are not sorted");
  }
  return rows;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SegmentError("is not JSON", { cause: error });
  }
}

/** Reads a stream index from a file or a cache. */
export interface StreamIndex {
  readStreamIndex(): Promise<readonly BlockPlace[]>;
  /** Reads the block [start, end), relative to the first block. */
  readStreamBlock(start: number, end: number): Promise<readonly StreamEntry[]>;
}

/** Returns the entry for a key; null if there is none. @throws {SegmentError} */
export async function findEntry(streams: StreamIndex, key: string): Promise<StreamEntry | null> {
  const blocks = await streams.readStreamIndex();
  const entries = await readBlock(streams, blocks, blockOf(blocks, key));
  return entries.find((entry) => entry.key === key) ?? null;
}

/** Returns the index of the only block that can contain a key; `blocks.length` if none can. */
function blockOf(blocks: readonly BlockPlace[], key: string): number {
  return firstIndex(blocks.length, (number) => blocks[number]!.lastKey >= key);
}

/** Returns the entries in a block, or none if it does not exist. */
async function readBlock(
  streams: StreamIndex,
  blocks: readonly BlockPlace[],
  number: number,
): Promise<readonly StreamEntry[]> {
  const block = blocks[number];
  if (block === undefined) return [];
  return await streams.readStreamBlock(blocks[number - 1]?.end ?? 0, block.end);
}

/** Yields blocks as in `StreamSource`, without the entries for sources. @throws {SegmentError} */
export async function* streamBlocks(
  streams: StreamIndex,
  from: string,
): AsyncGenerator<StreamEntry[], void> {
  const blocks = await streams.readStreamIndex();
  for (let number = blockOf(blocks, from); number < blocks.length; number++) {
    const entries = await readBlock(streams, blocks, number);
    const listed = entries.filter(({ key }) => key >= from && !isSourceKey(key));
    if (listed.length > 0) yield listed;
  }
}
