/**
 * Where a pusher resumes: after the last message of the stream, however old, and not from a memory
 * of its own. That is right whatever the pusher lost, and also when NATS lost the end of the
 * stream.
 */
import type { StreamInfo } from "@nats-io/jetstream";
import type { EventLogClient } from "../../mod.ts";
import { operationalError } from "../../src/commands/exit.ts";
import { BATCH_EVENTS_MAX } from "../../src/limits.ts";
import type { MessageFacts, MirrorStream } from "../nats/stream.ts";
import { isInLog } from "./is_in_log.ts";

export interface StreamEnd {
  /** Sequence of the last message; 0 before the first. */
  sequence: number;
  /**
   * The event of the log to resume after; null for its start. It is not that of the last message if
   * the stream ends within a batch that the log does not have.
   */
  resumeAfter: string | null;
}

/** The log, and the operator's word for an empty stream. */
export interface PushedLog {
  client: EventLogClient;
  /** The last event that was in a stream whose messages have all expired. */
  after: string | undefined;
  stop: AbortSignal;
}

/**
 * Finds the end of the stream in the log.
 * @throws {CommandError} the log has parted from the stream.
 */
export async function findStreamEnd(stream: MirrorStream, log: PushedLog): Promise<StreamEnd> {
  const info = await stream.info();
  const sequence = info.state.last_seq;
  // A recreated stream is filled from the start.
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

function hasEvent({ client, stop }: PushedLog, eventId: string): Promise<boolean> {
  return isInLog(client, eventId, stop);
}

/** The last event before the batch that the stream ends within; the last one if it ends whole. */
async function eventBeforeBatch(
  stream: MirrorStream,
  sequence: number,
  last: MessageFacts,
): Promise<string | null> {
  let facts = last;
  for (let seq = sequence - 1; !facts.endsBatch; seq--) {
    const isLost = sequence - seq > BATCH_EVENTS_MAX;
    const message = isLost ? null : await stream.message(seq);
    // Without the start of the batch nothing is known about what precedes it.
    if (message === null) return seq === 0 ? null : last.eventId;
    facts = stream.factsOf(message);
  }
  return facts.eventId;
}

/** The event of a last message that is gone. @throws {CommandError} it can't be told. */
async function expiredEnd({ config, state }: StreamInfo, log: PushedLog): Promise<string | null> {
  if (log.after !== undefined) return log.after;
  const listed = await log.client.streams({ signal: log.stop });
  // Message n is event n of the log, until a batch is lost.
  const events = listed.streams.reduce((sum, { event_count: count }) => sum + count, 0);
  if (events === state.last_seq) return listed.snapshotThroughEventId;
  throw operationalError(
    `message ${state.last_seq}, the last of stream ${config.name}, is gone, and the log has ` +
      `${events} events: name the last event that was in the stream with --after`,
  );
}

/** Says how far log and stream agree. */
async function parted(
  stream: MirrorStream,
  { state }: StreamInfo,
  log: PushedLog,
  lastId: string,
): Promise<Error> {
  // All messages before `low` are in the log; those from `high` on are not.
  let low = state.first_seq;
  let high = state.last_seq;
  let common = "none that the stream still has";
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
    `event ${lastId}, message ${state.last_seq} and the last of stream ${stream.name}, is not in ` +
      `this log; the last event in both is ${common}. The log is a different one, was restored ` +
      "from an older copy, or another service has taken over: nothing was pushed",
  );
}
