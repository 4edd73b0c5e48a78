/** Reads and writes whole indexes in memory, and forges ones with valid CRC-32s. */
import { Buffer } from "node:buffer";
import { KEY_HASHES } from "../../src/log/index/key_hash.ts";
import { mergeIndexes } from "../../src/log/index/index_merge.ts";
import { NO_COVERAGE } from "../../src/log/index/index_format.ts";
import { type IndexReader, runIndex } from "../../src/log/index/index_reader.ts";
import { TableCache } from "../../src/log/index/table_cache.ts";
import { type IndexContents, writeIndex } from "../../src/log/index/index_writer.ts";
import type { StreamEntry } from "../../src/log/read/stream_counts.ts";
import { SimulatedDisk } from "./simulated_disk.ts";

export interface IndexChange {
  streams?: (entries: StreamEntry[]) => StreamEntry[];
  identities?: (entries: BigUint64Array) => BigUint64Array;
  locations?: (entries: BigUint64Array) => BigUint64Array;
  filterBytes?: number;
}

/** Returns the coverage in the name of a run's index. */
export function coverageIn(path: string): string {
  return /_([0-9a-f]{64})\./.exec(path)![1]!;
}

export function indexIn(bytes: Buffer, coverage: string = NO_COVERAGE): IndexReader {
  const storage = new SimulatedDisk(new Map([["index", bytes]]));
  return runIndex(new TableCache(storage), "index", coverage);
}

/** All streams and sources of an index, in file order. */
export async function readEntries(index: IndexReader): Promise<StreamEntry[]> {
  return (await Array.fromAsync(index.blocks(""))).flat();
}

/** Reads all of an index. @throws {IndexError} if any part does not match its CRC-32. */
export async function checkIndex(index: IndexReader): Promise<void> {
  await index.loadFilter(await index.open());
  await mergeIndexes([{ index, ordinal: 0 }], index.coverage, () => {});
}

export async function encodeIndex(contents: IndexContents): Promise<Buffer> {
  const pieces: Buffer[] = [];
  await writeIndex(contents, (bytes) => void pieces.push(bytes));
  return Buffer.concat(pieces);
}

/** Changes what an index says. */
export async function rewriteIndex(
  bytes: Buffer,
  change: IndexChange,
  coverage?: string,
): Promise<Buffer> {
  const index = indexIn(bytes, coverage);
  const keep = <Value>(value: Value) => value;
  const { streams = keep, identities = keep, locations = keep, filterBytes } = change;
  const { batches } = await index.open();
  return await encodeIndex({
    coverage: index.coverage,
    batches,
    streams: [streams(await readEntries(index))],
    identities: [identities(await index.readEntries("identities", 0, KEY_HASHES))],
    locations: [locations(await index.readEntries("locations", 0, KEY_HASHES))],
    filterBytes,
  });
}
