/**
 * Turns prepared batches into the bytes of one commit: ids, observed time, event hashes, chain, lines.
 * Pure but for the clock and randomness behind `ids`; nothing here is remembered if the commit fails.
 */
import { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import { HistoryChain } from "../event/chain.ts";
import { EnvelopeWriter } from "../event/envelope.ts";
import type { EventIdSource } from "../event/event_id.ts";
import { formatTimestamp } from "../event/timestamp.ts";
import type { PreparedBatch } from "../event/types.ts";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../limits.ts";
import { type BatchEntry, type Commit, encodeCommitHeader } from "./commit_frame.ts";

/** A commit ready to be written: the header line, then the event lines. */
export interface BuiltCommit {
  commit: Commit;
  header: Buffer;
  body: Buffer;
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
  let text = "";
  for (const batch of batches) {
    const { source, batchId } = batch;
    const writer = new EnvelopeWriter({ source, batchId, observedAt });
    let firstEventId = "";
    let lastEventId = "";
    for (const event of batch.events) {
      const eventId = ids.next();
      if (firstEventId === "") firstEventId = eventId;
      assert(lastEventId < eventId, "event ids increase");
      lastEventId = eventId;
      const { line, eventHash } = writer.write(event, eventId);
      chain.append(eventHash);
      text += line + "\n";
    }
    entries.push({
      batch_digest: batch.batchDigest,
      batch_id: batchId,
      events: batch.events.length,
      first_event_id: firstEventId,
      last_event_id: lastEventId,
      source,
    });
  }
  return frameCommit(entries, Buffer.from(text), chain.head);
}

/** The empty commit of a clean shutdown. */
export function buildCleanEnd(head: string): BuiltCommit {
  return frameCommit([], Buffer.alloc(0), head);
}

function frameCommit(batches: BatchEntry[], body: Buffer, head: string): BuiltCommit {
  const commit: Commit = { batches, bytes: body.length, head };
  const header = encodeCommitHeader(commit, body);
  assert(body.length <= COMMIT_BODY_BYTES_MAX, "the lines of a commit are within their bound");
  assert(header.length <= COMMIT_HEADER_BYTES_MAX, "a commit header is within its bound");
  return { commit, header, body };
}
