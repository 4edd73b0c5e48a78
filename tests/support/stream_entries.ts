/** Reads all streams and sources of an index. */
import type { IndexReader } from "../../src/log/index/index_reader.ts";
import type { StreamEntry } from "../../src/log/read/stream_counts.ts";

/** Entries for sources and streams, in file order. */
export async function readEntries(index: IndexReader): Promise<StreamEntry[]> {
  return (await Array.fromAsync(index.blocks(""))).flat();
}
