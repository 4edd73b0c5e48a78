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
 * A replay page up to this size is sent in one write with its length; a longer one is streamed, a
 * chunk of the log at a time, so that a client holds no more than that.
 */
export const REPLAY_WHOLE_BYTES_MAX: number = 256 * 1024;

const OPENING = Buffer.from('{"events":[');
const COMMA = Buffer.from(",");
/** Means nothing between two values of a JSON text, and tells whether anybody still reads. */
const BLANK = Buffer.from(" ");
/** Up to here one write of a copy costs less than several without. */
const COPIED_BYTES_MAX = 64 * 1024;

/**
 * Answers with the page of `replay`, whose pieces may be empty. `onFailure` hears of an error after
 * the status was sent; the connection breaks then.
 */
export async function replayResponse(
  replay: Replay,
  onFailure: (error: unknown) => void,
): Promise<HttpResponse> {
  const page = new PageStart();
  for (let events = await replay.next(); events !== null; events = await replay.next()) {
    page.append(events);
    if (page.isFull) {
      return { status: 200, headers: JSON_HEADERS, body: streamPage(page, replay, onFailure) };
    }
  }
  return wholePage([...page.parts, closing(replay)]);
}

/** What is read of a page before its status is sent. */
class PageStart {
  readonly parts: Uint8Array[] = [OPENING];
  #sizeBytes = 0;
  #emptyPieces = 0;

  append(events: Uint8Array): void {
    if (events.length === 0) {
      this.#emptyPieces += 1;
      return;
    }
    if (this.hasEvents) this.parts.push(COMMA);
    this.parts.push(events);
    this.#sizeBytes += events.length;
  }

  get hasEvents(): boolean {
    return this.#sizeBytes > 0;
  }

  get isFull(): boolean {
    return this.#sizeBytes > REPLAY_WHOLE_BYTES_MAX || this.#emptyPieces > REPLAY_EMPTY_PIECES_MAX;
  }
}

function wholePage(parts: readonly Uint8Array[]): HttpResponse {
  const sizeBytes = parts.reduce((sum, part) => sum + part.length, 0);
  if (sizeBytes <= COPIED_BYTES_MAX) {
    return { status: 200, headers: JSON_HEADERS, body: Buffer.concat(parts, sizeBytes) };
  }
  const headers = { ...JSON_HEADERS, "content-length": String(sizeBytes) };
  return { status: 200, headers, body: eachOf(parts) };
}

async function* eachOf(parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void, void> {
  yield* parts;
}

async function* streamPage(
  start: PageStart,
  replay: Replay,
  onFailure: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield* start.parts;
    let { hasEvents } = start;
    for (let events = await replay.next(); events !== null; events = await replay.next()) {
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
