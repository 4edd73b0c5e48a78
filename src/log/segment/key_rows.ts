/**
 * Tells which rows of a row group may hold the events of a key: of the key of each row 16 bits of a
 * hash are kept in memory, the row groups asked for least recently dropped first. So a key that is
 * looked for costs neither its column nor, where a Bloom filter let it pass by mistake, any read.
 */
import { Buffer } from "node:buffer";
import type { ColumnValues } from "../parquet/column_values.ts";
import { withDecodeMemory } from "../parquet/decode_memory.ts";
import { fnv1a } from "./fnv1a.ts";
import { RowGroupCache } from "./row_group_cache.ts";
import type { Segment } from "./segment_reader.ts";

/**
 * Hashes of record keys kept in memory, two bytes for each event of the row groups in which keys
 * were looked for: four million events.
 */
const KEY_ROWS_CACHE_BYTES_MAX = 8 * 1024 * 1024;

export class KeyRows {
  readonly #hashes: RowGroupCache<Uint16Array>;

  constructor(limitBytes: number = KEY_ROWS_CACHE_BYTES_MAX) {
    this.#hashes = new RowGroupCache(limitBytes);
  }

  /** The rows, increasing, among which are all that have a key. @throws {SegmentError} */
  async find(segment: Segment, number: number, recordKey: string): Promise<number[]> {
    const hashes = await this.#hashes.get(
      `${segment.path} ${number}`,
      () => readHashes(segment, number),
    );
    const key = Buffer.from(recordKey);
    const wanted = hash16(key, 0, key.length);
    const rows: number[] = [];
    for (let row = hashes.indexOf(wanted); row >= 0; row = hashes.indexOf(wanted, row + 1)) {
      rows.push(row);
    }
    return rows;
  }
}

function readHashes(segment: Segment, number: number): Promise<Uint16Array> {
  return withDecodeMemory(async (memory) => {
    const { record_key } = await segment.readColumns(number, ["record_key"], { memory });
    return hashesOf(record_key);
  });
}

function hashesOf({ bytes, starts, ends }: ColumnValues): Uint16Array {
  const hashes = new Uint16Array(starts.length);
  for (let row = 0; row < hashes.length; row++) {
    hashes[row] = hash16(bytes, starts[row]!, ends[row]!);
  }
  return hashes;
}

function hash16(bytes: Uint8Array, start: number, end: number): number {
  const hash = fnv1a(bytes, start, end);
  return (hash >>> 16) ^ (hash & 0xffff);
}
