/**
 * Writes a finite replay: the events as the log stores them, then the members that are known at the
 * end. A page of ordinary size is read before its status is sent, so that a failure is still an
 * error document, and sent in one write; a larger one is streamed at the pace of the client.
 */
import { Buffer } from "node:buffer";
import { REPLAY_EMPTY_PIECES_MAX, REPLAY_WHOLE_BYTES_MAX } from "../limits.ts";
import type { Replay } from "../service/event_log.ts";
import { GrowingBuffer } from "./growing_buffer.ts";
import type { HttpResponse } from "./message.ts";
import { JSON_HEADERS } from "./responses.ts";

const OPENING = Buffer.from('{"events":[');
const COMMA = Buffer.from(",");
/** Means nothing between two values of a JSON text, and tells whether anybody still reads. */
const BLANK = Buffer.from(" ");
/** Room for a small page; a larger one makes room as it is read. */
const FIRST_CAPACITY_BYTES = 16 * 1024;

/**
 * Answers with the page of `replay`, whose pieces may be empty. `onFailure` hears of an error after
 * the status was sent; the connection breaks then.
 */
export async function replayResponse(
  replay: Replay,
  onFailure: (error: unknown) => void,
): Promise<HttpResponse> {
  const page = new GrowingBuffer(FIRST_CAPACITY_BYTES);
  page.append(OPENING);
  let emptyPieces = 0;
  let piece = await replay.next();
  while (
    piece !== null && page.sizeBytes < REPLAY_WHOLE_BYTES_MAX &&
    emptyPieces < REPLAY_EMPTY_PIECES_MAX
  ) {
    if (piece.length === 0) emptyPieces += 1;
    else appendEvents(page, piece);
    piece = await replay.next();
  }
  if (piece !== null) {
    const body = streamPage(page.take(), piece, replay, onFailure);
    return { status: 200, headers: JSON_HEADERS, body };
  }
  page.append(closing(replay));
  return { status: 200, headers: JSON_HEADERS, body: page.take() };
}

function appendEvents(page: GrowingBuffer, events: Uint8Array): void {
  if (page.sizeBytes > OPENING.length) page.append(COMMA);
  page.append(events);
}

async function* streamPage(
  start: Uint8Array,
  following: Uint8Array,
  replay: Replay,
  onFailure: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield start;
    let isFirst = start.length === OPENING.length;
    for (let events: Uint8Array | null = following; events !== null; events = await replay.next()) {
      if (events.length === 0) {
        yield BLANK;
      } else {
        if (!isFirst) yield COMMA;
        yield events;
        isFirst = false;
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
