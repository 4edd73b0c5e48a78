/**
 * Writes a finite replay: the events as the log stores them, from the memory they were read into,
 * then the members that are known at the end. A page of ordinary size is read before its status is
 * sent, so that a failure is still an error document, and sent with its length; a larger one is
 * streamed at the pace of the client.
 */
import { Buffer } from "node:buffer";
import type { Replay } from "../service/event_log.ts";
import type { HttpResponse } from "../http/message.ts";
import { JSON_HEADERS } from "./responses.ts";

/**
 * Pieces without an event, from a long scan for rare ones, after which the page is streamed: only a
 * response that is under way tells when its client has gone.
 */
export const REPLAY_EMPTY_PIECES_MAX: number = 16;

/**
 * A page up to this size is sent in one write with its length; a longer one is streamed, a chunk of
 * the log at a time, so that a client holds no more than that.
 */
export const REPLAY_WHOLE_BYTES_MAX: number = 64 * 1024;

const OPENING = Buffer.from('{"events":[');
const COMMA = Buffer.from(",");
/** Means nothing between two values of a JSON text, and tells whether anybody still reads. */
const BLANK = Buffer.from(" ");

/**
 * Answers with the page of `replay`, whose pieces may be empty. `onFailure` hears of an error after
 * the status was sent; the connection breaks then.
 */
export async function replayResponse(
  replay: Replay,
  onFailure: (error: unknown) => void,
): Promise<HttpResponse> {
  const parts: Uint8Array[] = [];
  let sizeBytes = 0;
  let emptyPieces = 0;
  for (let events = await replay.next(); events !== null; events = await replay.next()) {
    sizeBytes += events.length;
    if (events.length === 0) emptyPieces += 1;
    if (sizeBytes > REPLAY_WHOLE_BYTES_MAX || emptyPieces > REPLAY_EMPTY_PIECES_MAX) {
      const body = streamPage(parts, events, replay, onFailure);
      return { status: 200, headers: JSON_HEADERS, body };
    }
    if (events.length > 0) parts.push(COMMA, Buffer.from(events));
  }
  const body = Buffer.concat([OPENING, ...parts.slice(1), closing(replay)]);
  return { status: 200, headers: JSON_HEADERS, body };
}

/**
 * @param parts events read so far, each behind a comma.
 * @param piece what was read last, valid until more is asked for.
 */
async function* streamPage(
  parts: readonly Uint8Array[],
  piece: Uint8Array,
  replay: Replay,
  onFailure: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield Buffer.concat([OPENING, ...parts.slice(1)]);
    let hasEvents = parts.length > 0;
    for (let events: Uint8Array | null = piece; events !== null; events = await replay.next()) {
      if (events.length === 0) {
        yield BLANK;
      } else {
        if (hasEvents) yield COMMA;
        yield events;
        hasEvents = true;
      }
    }
    yield closing(replay);
  } catch (error) {
    onFailure(error);
    throw error;
  }
}

/** `last_event_id` is absent from an empty page. */
function closing(replay: Replay): Buffer {
  const { lastEventId, nextAfter, snapshotThroughEventId } = replay;
  const members = JSON.stringify({
    ...(lastEventId === null ? {} : { last_event_id: lastEventId }),
    next_after: nextAfter,
    snapshot_through_event_id: snapshotThroughEventId,
  });
  return Buffer.from(`],${members.slice(1)}`);
}
