/** Reads the whole stream index of a segment. */
import type { Segment } from "../../src/log/segment/segment_reader.ts";
import type { StreamEntry } from "../../src/log/read/stream_counts.ts";

/** Sources and streams, in the order of the file. */
export async function readEntries(segment: Segment): Promise<StreamEntry[]> {
  const index = await segment.readStreamIndex();
  const entries: StreamEntry[] = [];
  for (let number = 0; number < index.length; number++) {
    const block = await segment.readStreamBlock(index.placeAt(number));
    for (let place = 0; place < block.length; place++) {
      entries.push({
        key: block.keyAt(place)!,
        events: block.eventsAt(place),
        lastEventId: block.lastEventIdAt(place),
      });
    }
  }
  return entries;
}
