/**
 * Turns prepared batches into the bytes of one commit: ids, observed time, event hashes, chain,
 * lines. Pure but for the clock and randomness behind `ids`; nothing here is remembered if the
 * commit fails.
 */
import { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import { HistoryChain } from "../event/chain.ts";
import { fillEvents } from "../event/encoded_events.ts";
import type { EventIdSource } from "../event/event_id.ts";
import { formatTimestamp } from "../event/timestamp.ts";
import type { PreparedBatch } from "../event/types.ts";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../limits.ts";
import { type BatchEntry, type Commit, encodeCommitHeader } from "./commit_frame.ts";

/** What one batch adds to one stream of its source. */
export interface StreamGrowth {
  stream: string;
  events: number;
  lastEventId: string;
}

/** A commit ready to be written: the header line, then the event lines. */
export interface BuiltCommit {
  commit: Commit;
  header: Buffer;
  body: Buffer;
  /** For each batch of the commit, the streams it grows. */
  growth: StreamGrowth[][];
}

/** @param head chain head before the commit, 64 lowercase hex digits. */
export function buildCommit(
  batches: readonly PreparedBatch[],
  ids: EventIdSource,
  head: string,
  nowMs: number,
): BuiltCommit {
  const chain = new HistoryChain(head);
  const observedAt = formatTimestamp(nowMs);
  const entries: BatchEntry[] = [];
  const growth: StreamGrowth[][] = [];
  for (const batch of batches) {
    const eventIds = nextIds(ids, batch.events.count);
    fillEvents(batch.events, eventIds, observedAt, chain);
    entries.push(batchEntry(batch, eventIds));
    growth.push(streamGrowth(batch, eventIds));
  }
  const body = Buffer.concat(batches.map(({ events }) => events.lines));
  return frameCommit({ batches: entries, head: chain.head }, body, growth);
}

function nextIds(ids: EventIdSource, count: number): string[] {
  const eventIds: string[] = [];
  for (let index = 0; index < count; index++) eventIds.push(ids.next());
  return eventIds;
}

/** The empty commit of a clean shutdown. */
export function buildCleanEnd(head: string): BuiltCommit {
  return frameCommit({ batches: [], head }, Buffer.alloc(0), []);
}

function batchEntry(batch: PreparedBatch, eventIds: string[]): BatchEntry {
  const firstEventId = eventIds[0];
  const lastEventId = eventIds.at(-1);
  assert(firstEventId !== undefined && lastEventId !== undefined, "a batch holds events");
  assert(eventIds.every((id, place) => place === 0 || eventIds[place - 1]! < id), "ids increase");
  return {
    batch_digest: batch.batchDigest,
    batch_id: batch.batchId,
    events: batch.events.count,
    first_event_id: firstEventId,
    last_event_id: lastEventId,
    source: batch.source,
  };
}

function streamGrowth({ events }: PreparedBatch, eventIds: string[]): StreamGrowth[] {
  return events.streams.map(({ stream, events, lastIndex }) => ({
    stream,
    events,
    lastEventId: eventIds[lastIndex]!,
  }));
}

function frameCommit(
  { batches, head }: Pick<Commit, "batches" | "head">,
  body: Buffer,
  growth: StreamGrowth[][],
): BuiltCommit {
  const commit: Commit = { batches, bytes: body.length, head };
  const header = encodeCommitHeader(commit, body);
  assert(body.length <= COMMIT_BODY_BYTES_MAX, "the lines of a commit are within their bound");
  assert(header.length <= COMMIT_HEADER_BYTES_MAX, "a commit header is within its bound");
  return { commit, header, body, growth };
}
