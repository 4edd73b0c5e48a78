/**
 * Finds where a pusher resumes. The position comes from the stream's last message, not local state,
 * so it is correct even if the pusher lost its state or NATS lost the end of the stream.
 */
import type { StreamInfo } from "@nats-io/jetstream";
import type { EventLogClient } from "../../mod.ts";
import { operationalError } from "../../src/commands/exit.ts";
import { BATCH_EVENTS_MAX } from "../../src/limits.ts";
import type { MessageFacts, MirrorStream } from "../nats/stream.ts";
import { sumOf } from "../../src/sum.ts";

export interface StreamEnd {
  /** Sequence of the stream's last message; 0 if nothing was ever published. */
  sequence: number;
  /**
   * The event to resume after; null for the start of the log. It is the event in the last message,
   * unless the stream ends within a batch that the log does not contain.
   */
  resumeAfter: string | null;
}

/** The log, and the position that an operator set for an expired stream. */
export interface PushedLog {
  client: EventLogClient;
  /** The last event pushed to a stream whose messages have all expired. */
  after: string | undefined;
  stop: AbortSignal;
}

/**
 * Finds the position in the log that matches the end of the stream.
 * @throws {CommandError} if the log has diverged from the stream.
 */
export async function findStreamEnd(stream: MirrorStream, log: PushedLog): Promise<StreamEnd> {
  const info = await stream.info();
  const sequence = info.state.last_seq;
  // An empty stream, new or recreated, is filled from the start of the log.
  if (sequence === 0) return { sequence, resumeAfter: null };
  const last = await stream.message(sequence);
  if (last === null) return { sequence, resumeAfter: await expiredEnd(info, log) };
  const facts = stream.factsOf(last);
  const { eventId } = facts;
  if (await hasEvent(log, eventId)) return { sequence, resumeAfter: eventId };
  const resumeAfter = await eventBeforeBatch(stream, sequence, facts);
  if (resumeAfter !== eventId && (resumeAfter === null || await hasEvent(log, resumeAfter))) {
    return { sequence, resumeAfter };
  }
  throw await parted(stream, info, log, eventId);
}

async function hasEvent({ client, stop }: PushedLog, eventId: string): Promise<boolean> {
  return await client.findEvent(eventId, { signal: stop }) !== null;
}

/**
 * Returns the last event before the stream's last batch if that batch is incomplete. Otherwise, or
 * if the start of the batch has expired, returns the stream's last event.
 */
async function eventBeforeBatch(
  stream: MirrorStream,
  sequence: number,
  last: MessageFacts,
): Promise<string | null> {
  let facts = last;
  for (let seq = sequence - 1; !facts.endsBatch; seq--) {
    const isLost = sequence - seq > BATCH_EVENTS_MAX;
    const message = isLost ? null : await stream.message(seq);
    // At sequence 0, the batch is the stream's first. Otherwise, its start has expired.
    if (message === null) return seq === 0 ? null : last.eventId;
    facts = stream.factsOf(message);
  }
  return facts.eventId;
}

/** Returns the event in the last message, which has expired. @throws {CommandError} if unknown. */
async function expiredEnd({ config, state }: StreamInfo, log: PushedLog): Promise<string | null> {
  if (log.after !== undefined) return log.after;
  const listed = await log.client.streams({ signal: log.stop });
  // Message n is event n in the log, unless a batch was lost.
  const events = sumOf(listed.streams, ({ event_count: count }) => count);
  if (events === state.last_seq) return listed.snapshotThroughEventId;
  throw operationalError(
    `message ${state.last_seq}, the last in stream ${config.name}, has expired, and the log has ` +
      `${events} events: pass the id of the last pushed event to --after`,
  );
}

/** Creates the error for a log that has diverged. It names the last event that both contain. */
async function parted(
  stream: MirrorStream,
  { state }: StreamInfo,
  log: PushedLog,
  lastId: string,
): Promise<Error> {
  // Invariant: messages before `low` are in the log, and `high` and later ones are not.
  let low = state.first_seq;
  let high = state.last_seq;
  let common = "unknown, since the stream contains no events from this log";
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const message = await stream.message(middle);
    const eventId = message && stream.factsOf(message).eventId;
    if (eventId !== null && await hasEvent(log, eventId)) {
      common = `${eventId}, message ${middle}`;
      low = middle + 1;
    } else high = middle;
  }
  return operationalError(
    `event ${lastId} (message ${state.last_seq}, the last in stream ${stream.name}) is not in ` +
      `this log; the last event in both is ${common}. Either this is a different log, it was ` +
      "restored from an older copy, or another service has taken over; nothing was pushed",
  );
}
