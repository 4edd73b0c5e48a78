/** Finds the message that continues a log. */
import type { StreamInfo } from "@nats-io/jetstream";
import { operationalError } from "../../src/commands/exit.ts";
import type { MirrorStream } from "../nats/stream.ts";

/** The stream has no message after the log's last event, or not that event either. */
export class StreamBehindError extends Error {
  override name = "StreamBehindError";
}

/**
 * The sequence of the first message after event `frontier`; null: start of the log.
 * @throws {StreamBehindError} the stream ends before `frontier`.
 * @throws {CommandError} the stream has later events, but not the next one.
 */
export async function findStart(
  stream: MirrorStream,
  { state }: StreamInfo,
  frontier: string | null,
): Promise<number> {
  if (frontier === null || state.messages === 0) return state.first_seq;
  // Ids increase from message to message: find the first one after `frontier`.
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
    throw new StreamBehindError(`the stream ends with event ${eventId}, the log with ${frontier}`);
  }
  const next = await eventAt(stream, low);
  if (next.previousId === frontier) return low;
  // The events of a lost batch may have later ids than those that replaced it.
  for (let seq = low; seq <= state.last_seq; seq++) {
    if ((await eventAt(stream, seq)).previousId === frontier) return seq;
  }
  throw operationalError(
    `the log ends with event ${frontier}, but message ${low} of the stream, event ` +
      `${next.eventId}, follows event ${next.previousId}: the stream no longer has what lies ` +
      "between, or is another log's",
  );
}

async function eventAt(stream: MirrorStream, seq: number) {
  const message = await stream.message(seq);
  if (message === null) throw new Error(`message ${seq} of the stream has expired`);
  return stream.factsOf(message);
}
