/** Merges sorted streams of several parts of the log, as an LSM tree merges its runs. */
import type { StreamBlocks, StreamEntry, StreamSource } from "./stream_counts.ts";

/** Maximum parts of the log searched concurrently. */
const SEEKS_MAX = 32;
const BLOCK_STREAMS_MAX = 128;

/** A part of the log, and the place reached in its streams. */
interface Part {
  readonly blocks: StreamBlocks;
  /** The current block; empty at the end. */
  block: readonly StreamEntry[];
  /** Place of the next stream in the block. */
  place: number;
  /** Its key; null at the end. */
  key: string | null;
}

/**
 * Yields all streams from a key on, in order, in blocks of at least one. A stream that several
 * parts have is one entry, with the sum of the counts and the latest event.
 */
export async function* mergedStreams(
  sources: readonly StreamSource[],
  from: string,
): AsyncGenerator<StreamEntry[], void> {
  const parts = sources.map((streams): Part => (
    { blocks: streams.blocks(from), block: [], place: 0, key: null }
  ));
  for (let place = 0; place < parts.length; place += SEEKS_MAX) {
    const seeks = parts.slice(place, place + SEEKS_MAX).map(enterNextBlock);
    // Wait for all seeks, so that no file is still being read after the merge has failed.
    await Promise.allSettled(seeks);
    await Promise.all(seeks);
  }
  let merged: StreamEntry[] = [];
  for (let key = leastKey(parts); key !== null; key = leastKey(parts)) {
    const entry: StreamEntry = { key, events: 0, lastEventId: "" };
    for (const part of parts) {
      if (part.key !== key) continue;
      const { events, lastEventId } = part.block[part.place]!;
      entry.events += events;
      if (entry.lastEventId < lastEventId) entry.lastEventId = lastEventId;
      part.place += 1;
      if (part.place === part.block.length) await enterNextBlock(part);
      else part.key = part.block[part.place]!.key;
    }
    merged.push(entry);
    if (merged.length < BLOCK_STREAMS_MAX) continue;
    yield merged;
    merged = [];
  }
  if (merged.length > 0) yield merged;
}

async function enterNextBlock(part: Part): Promise<void> {
  part.block = (await part.blocks.next()).value ?? [];
  part.place = 0;
  part.key = part.block[0]?.key ?? null;
}

function leastKey(parts: readonly Part[]): string | null {
  let least: string | null = null;
  for (const { key } of parts) {
    if (key !== null && (least === null || key < least)) least = key;
  }
  return least;
}
