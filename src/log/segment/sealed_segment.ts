/**
 * Presents a segment as a file in a snapshot. Readers get the lines in the row groups that may
 * match their filter.
 */
import type { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { LF } from "../line/line_bytes.ts";
import { firstLineAfter } from "../line/stored_line.ts";
import type { LinesWanted, SealedFile } from "../read/snapshot.ts";
import { pruneRowGroups } from "./row_group_pruning.ts";
import type { Segment } from "./segment_reader.ts";
import { countThrough } from "./segment_streams.ts";
import { streamBlocks } from "./stream_index.ts";

/** Returns a reader's view of a segment that ends with `lastEventId`. */
export function sealedSegment(segment: Segment, lastEventId: string): SealedFile {
  return {
    path: segment.path,
    lastEventId,
    streams: {
      blocks: (key) => streamBlocks(segment, key),
      countThrough: (eventId) => countThrough(segment, eventId),
    },
    lines: (wanted) => readChunks(segment, wanted),
  };
}

/** Yields chunks of complete lines, copied from the cache so that the caller may overwrite them. */
async function* readChunks(
  segment: Segment,
  wanted: LinesWanted,
): AsyncGenerator<Buffer, void> {
  const { after, filter: { recordKey }, memory } = wanted;
  for (const number of await pruneRowGroups(segment, wanted)) {
    if (recordKey !== undefined) {
      const lines = await segment.readLinesOfKey(number, recordKey);
      const start = lines !== null && after !== undefined ? firstLineAfter(lines, after) : 0;
      if (lines !== null && start < lines.length) yield lines.subarray(start);
      continue;
    }
    let end = 0;
    let sizeBytes = Infinity;
    while (end < sizeBytes) {
      yield await segment.useRowGroup(number, (lines) => {
        const start = end === 0 && after !== undefined ? firstLineAfter(lines, after) : end;
        end = chunkEnd(lines, start);
        sizeBytes = lines.length;
        const chunk = memory.take(end - start);
        chunk.set(lines.subarray(start, end));
        return chunk;
      });
    }
  }
}

/** Returns the end of the chunk of one or more complete lines that starts at `start`. */
function chunkEnd(lines: Buffer, start: number): number {
  if (lines.length - start <= READ_CHUNK_BYTES) return lines.length;
  const end = lines.lastIndexOf(LF, start + READ_CHUNK_BYTES - 1) + 1;
  return end > start ? end : lines.indexOf(LF, start) + 1;
}
