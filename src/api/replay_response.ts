/**
 * Writes a replay page: the stored lines, then the members known only at the end. A page of typical
 * size is read completely before the status is sent, so that a failed read can become an error
 * document. A larger page is streamed at the client's pace.
 */
import { Buffer } from "node:buffer";
import type { Replay } from "../service/event_log.ts";
import type { HttpRequest, HttpResponse } from "../http/message.ts";
import { JSON_HEADERS } from "./responses.ts";

/** Empty pieces before a page is streamed, so that a write can tell whether its client is there. */
const REPLAY_EMPTY_PIECES_MAX: number = 16;

/** A page up to this size is sent in one write. A larger page is sent one log chunk at a time. */
export const REPLAY_WHOLE_BYTES_MAX: number = 64 * 1024;

const OPENING = Buffer.from('{"events":[');
const COMMA = Buffer.from(",");
/** JSON whitespace, written to detect a disconnected client. */
const BLANK = Buffer.from(" ");

/** @param onFailure called if reading fails after the status is sent. */
export async function replayResponse(
  replay: Replay,
  { client }: Pick<HttpRequest, "client">,
  onFailure: (error: unknown) => void,
): Promise<HttpResponse> {
  const parts: Uint8Array[] = [];
  let sizeBytes = 0;
  let emptyPieces = 0;
  for (let events = await replay.next(); events !== null; events = await replay.next()) {
    sizeBytes += events.length;
    if (events.length === 0) emptyPieces += client() === "unknown" ? Infinity : 1;
    if (sizeBytes > REPLAY_WHOLE_BYTES_MAX || emptyPieces > REPLAY_EMPTY_PIECES_MAX) {
      const body = streamPage(parts, events, replay, onFailure);
      return { status: 200, headers: JSON_HEADERS, body };
    }
    if (events.length > 0) parts.push(COMMA, Buffer.from(events));
  }
  const body = Buffer.concat([OPENING, ...parts.slice(1), closing(replay)]);
  return { status: 200, headers: JSON_HEADERS, body };
}

/** @param parts events read before `piece`, each preceded by a comma. */
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
      if (events.length > 0 && hasEvents) yield COMMA;
      yield events.length > 0 ? events : BLANK;
      hasEvents ||= events.length > 0;
    }
    yield closing(replay);
  } catch (error) {
    onFailure(error);
    throw error;
  }
}

/** Returns the end of the page; `last_event_id` is absent if the page is empty. */
function closing(replay: Replay): Buffer {
  const { lastEventId, nextAfter, snapshotThroughEventId } = replay;
  const members = JSON.stringify({
    ...(lastEventId === null ? {} : { last_event_id: lastEventId }),
    next_after: nextAfter,
    snapshot_through_event_id: snapshotThroughEventId,
  });
  return Buffer.from(`],${members.slice(1)}`);
}
