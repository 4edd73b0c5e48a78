/** Reads the whole stream index of a segment. */
import type { StreamEntry } from "../../src/log/read/stream_counts.ts";
import type { StreamIndex } from "../../src/log/segment/stream_index.ts";

/** Entries for sources and streams, in file order. */
export async function readEntries(streams: StreamIndex): Promise<StreamEntry[]> {
  const entries: StreamEntry[] = [];
  let start = 0;
  for (const { end } of await streams.readStreamIndex()) {
    entries.push(...await streams.readStreamBlock(start, end));
    start = end;
  }
  return entries;
}
