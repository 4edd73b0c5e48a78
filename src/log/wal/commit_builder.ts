/**
 * Builds a commit from prepared batches: assigns ids and `observed_at`, computes event hashes and
 * the chain, and completes the lines. The only state is `ids`.
 */
import type { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { stampEvents } from "../../event/batch_encoder.ts";
import type { EventIdSource } from "../../event/event_id.ts";
import { formatTimestamp } from "../../event/timestamp.ts";
import type { PreparedBatch } from "../../event/types.ts";
import { serveSockets } from "../../turns.ts";
import type { StreamGrowth } from "./batch_index.ts";
import { type BatchEntry, type Commit, encodeCommit } from "./commit_frame.ts";

/** Events stamped before other clients get a turn: a few milliseconds of work. */
const SLICE_EVENTS = 2000;

export interface BuiltCommit {
  commit: Commit;
  /** The commit's bytes in the file. */
  frame: Buffer;
  /** Events added to each stream, batch by batch. */
  growth: readonly StreamGrowth[];
}

export interface CommitParts {
  batches: readonly PreparedBatch[];
  ids: EventIdSource;
  /** Chain head before the commit, 64 lowercase hex digits. */
  head: string;
  nowMs: number;
}

/** Builds a commit in slices of SLICE_EVENTS. Stamps the batches' events in place. */
export async function buildCommit(
  { batches, ids, head, nowMs }: CommitParts,
): Promise<BuiltCommit> {
  const chain = { head };
  const observedAt = formatTimestamp(nowMs);
  const entries: BatchEntry[] = [];
  const growth: StreamGrowth[] = [];
  let sliceEvents = 0;
  for (const batch of batches) {
    const { events } = batch;
    const eventIds: string[] = [];
    while (eventIds.length < events.count) eventIds.push(ids.next());
    for (let first = 0; first < events.count;) {
      if (sliceEvents === SLICE_EVENTS) {
        sliceEvents = 0;
        await serveSockets();
      }
      const end = Math.min(events.count, first + SLICE_EVENTS - sliceEvents);
      stampEvents(events, { eventIds, observedAt, chain }, first, end);
      sliceEvents += end - first;
      first = end;
    }
    assert(events.count > 0, "a batch must have events");
    assert(eventIds.every((id, n) => n === 0 || eventIds[n - 1]! < id), "event ids must increase");
    entries.push({
      batch_digest: batch.batchDigest,
      batch_id: batch.batchId,
      events: events.count,
      first_event_id: eventIds[0]!,
      last_event_id: eventIds.at(-1)!,
      source: batch.source,
    });
    for (const { stream, events: grown, lastIndex } of events.streams) {
      const lastEventId = eventIds[lastIndex]!;
      growth.push({ source: batch.source, stream, events: grown, lastEventId });
    }
  }
  const lines = batches.map(({ events }) => events.lines);
  const { commit, frame } = encodeCommit({ batches: entries, head: chain.head }, lines);
  return { commit, frame, growth };
}
