/**
 * Presents a segment as a file in a snapshot. Readers get the lines in the row groups that may
 * match their filter.
 */
import type { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { filterHashes } from "../index/key_hash.ts";
import { LF } from "../line/line_bytes.ts";
import { firstLineAfter } from "../line/stored_line.ts";
import type { LinesWanted, SealedFile } from "../read/snapshot.ts";
import type { Segment } from "./segment_reader.ts";

/**
 * Returns a reader's view of a segment that ends with `lastEventId`.
 * @param mayMatch whether the segment may have lines that a reader wants.
 */
export function sealedSegment(
  segment: Segment,
  lastEventId: string,
  mayMatch: (wanted: LinesWanted) => Promise<boolean>,
): SealedFile {
  return {
    path: segment.path,
    lastEventId,
    streams: segment.index,
    async *lines(wanted) {
      if (await mayMatch(wanted)) yield* readChunks(segment, wanted);
    },
  };
}

/** Yields chunks of complete lines, copied from the cache so that the caller may overwrite them. */
async function* readChunks(
  segment: Segment,
  wanted: LinesWanted,
): AsyncGenerator<Buffer, void> {
  const { after, filter: { recordKey }, memory } = wanted;
  const numbers = await pruneRowGroups(segment, wanted);
  for (const [place, number] of numbers.entries()) {
    if (recordKey !== undefined) {
      const lines = await segment.readLinesOfKey(number, recordKey);
      if (lines.length > READ_CHUNK_BYTES) await wanted.reserve?.(lines.length);
      const start = after === undefined ? 0 : firstLineAfter(lines, after);
      if (start < lines.length) yield lines.subarray(start);
      continue;
    }
    let end = 0;
    let sizeBytes = Infinity;
    let reservedBytes = READ_CHUNK_BYTES;
    while (end < sizeBytes) {
      const taken = await segment.useRowGroup(number, (lines) => {
        const start = end === 0 && after !== undefined ? firstLineAfter(lines, after) : end;
        const next = numbers[place + 1];
        const isFirst = end === 0;
        const chunkBytes = chunkEnd(lines, start) - start;
        if (chunkBytes > reservedBytes) return chunkBytes;
        end = start + chunkBytes;
        sizeBytes = lines.length;
        // Decode the next row group while this one is sent.
        if (isFirst && next !== undefined && wanted.wantedBytes() > sizeBytes - start) {
          segment.prefetchRowGroup(next);
        }
        const chunk = memory.take(end - start);
        chunk.set(lines.subarray(start, end));
        return chunk;
      });
      const isTaken = typeof taken !== "number";
      reservedBytes = isTaken ? READ_CHUNK_BYTES : taken;
      if (isTaken) yield taken;
      else await wanted.reserve?.(taken);
    }
  }
}

/** Returns the end of the chunk of one or more complete lines that starts at `start`. */
function chunkEnd(lines: Buffer, start: number): number {
  if (lines.length - start <= READ_CHUNK_BYTES) return lines.length;
  const end = lines.lastIndexOf(LF, start + READ_CHUNK_BYTES - 1) + 1;
  return end > start ? end : lines.indexOf(LF, start) + 1;
}

/**
 * Returns the row groups that may contain matching events after `after`, in log order.
 * @throws {SegmentError}
 */
async function pruneRowGroups(
  segment: Segment,
  { after, filter }: Pick<LinesWanted, "after" | "filter">,
): Promise<number[]> {
  let numbers = null as readonly number[] | null;
  for (const hash of filterHashes(filter)) {
    const found = await segment.rowGroupsWith("locations", hash);
    numbers = numbers?.filter((number) => found.includes(number)) ?? found;
    if (numbers.length === 0) return [];
  }
  const rowGroups = await segment.rowGroups();
  return (numbers ?? [...rowGroups.keys()]).filter((number) =>
    after === undefined || rowGroups[number]!.lastEventId > after
  );
}
