/** Finds the message from which to continue a log. */
import type { StreamInfo } from "@nats-io/jetstream";
import { operationalError } from "../../src/commands/exit.ts";
import { BATCH_EVENTS_MAX } from "../../src/limits.ts";
import { type MirrorStream, StreamNotReadyError } from "../nats/stream.ts";

/**
 * Returns the sequence of the message that follows event `frontier`.
 * @param frontier the log's last event; null if the log is empty.
 * @throws {StreamNotReadyError} if the stream ends before `frontier`.
 * @throws {CommandError} if the stream has later events, but not the next one.
 */
export async function findStart(
  stream: MirrorStream,
  { state }: StreamInfo,
  frontier: string | null,
  stop: AbortSignal,
): Promise<number> {
  // An empty stream reports 0 as its first sequence.
  if (frontier === null || state.messages === 0) return Math.max(1, state.first_seq);
  // Ids are in ascending order, so find the first one after `frontier` by binary search.
  let low = state.first_seq;
  let high = state.last_seq + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((await eventAt(stream, middle)).eventId > frontier) high = middle;
    else low = middle + 1;
  }
  if (low > state.last_seq) {
    const { eventId } = await eventAt(stream, state.last_seq);
    if (eventId === frontier) return low;
    throw new StreamNotReadyError(
      `the stream ends with event ${eventId}, but the log ends with ${frontier}: push this log ` +
        "first, or, if it is a different log, use an empty directory",
    );
  }
  const next = await eventAt(stream, low);
  if (next.previousId === frontier) return low;
  // A lost batch's events may have later ids than the events that replaced them.
  const endSeq = Math.min(state.last_seq + 1, low + BATCH_EVENTS_MAX);
  for (let seq = low + 1; seq < endSeq; seq++) {
    stop.throwIfAborted();
    if ((await eventAt(stream, seq)).previousId === frontier) return seq;
  }
  throw operationalError(
    `the log ends with event ${frontier}, but message ${low} in the stream, event ` +
      `${next.eventId}, follows event ${next.previousId}: events in between have expired, or ` +
      "the stream is from a different log; use an empty directory, and pass --segments to " +
      "restore expired events",
  );
}

async function eventAt(stream: MirrorStream, seq: number) {
  const message = await stream.message(seq);
  if (message === null) throw new Error(`message ${seq} in the stream has expired`);
  return stream.factsOf(message);
}
