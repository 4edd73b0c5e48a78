/** Merges sorted streams of several parts of the log, as an LSM tree merges its runs. */
import { firstIndex } from "../../first_index.ts";
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
}

/**
 * Yields all streams from a key on, in order, in blocks of at least one. A stream that several
 * parts have is one entry, with the sum of the counts and the latest event.
 */
export async function* mergedStreams(
  sources: readonly StreamSource[],
  from: string,
): AsyncGenerator<StreamEntry[], void> {
  const parts = sources.map((source): Part => (
    { blocks: source.blocks(from), block: [], place: 0 }
  ));
  for (let place = 0; place < parts.length; place += SEEKS_MAX) {
    const seeks = parts.slice(place, place + SEEKS_MAX).map(enterNextBlock);
    // Wait for all seeks, so that no file is still being read after the merge has failed.
    await Promise.allSettled(seeks);
    await Promise.all(seeks);
  }
  const waiting = parts.filter(({ block }) => block.length > 0);
  waiting.sort((a, b) => nextOf(a).key < nextOf(b).key ? -1 : 1);
  let merged: StreamEntry[] = [];
  while (waiting.length > 0) {
    const part = waiting.shift()!;
    const { key, events, lastEventId } = nextOf(part);
    const last = merged.at(-1);
    if (last?.key === key) {
      last.events += events;
      if (last.lastEventId < lastEventId) last.lastEventId = lastEventId;
    } else {
      if (merged.length === BLOCK_STREAMS_MAX) {
        yield merged;
        merged = [];
      }
      merged.push({ key, events, lastEventId });
    }
    part.place += 1;
    if (part.place === part.block.length) await enterNextBlock(part);
    if (part.block.length === 0) continue;
    const next = nextOf(part).key;
    waiting.splice(
      firstIndex(waiting.length, (place) => nextOf(waiting[place]!).key >= next),
      0,
      part,
    );
  }
  if (merged.length > 0) yield merged;
}

async function enterNextBlock(part: Part): Promise<void> {
  part.block = (await part.blocks.next()).value ?? [];
  part.place = 0;
}

function nextOf({ block, place }: Part): StreamEntry {
  return block[place]!;
}
