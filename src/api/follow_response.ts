/**
 * Writes a follow response record by record, at the client's pace. If a client reads nothing for
 * too long while a record is pending, its session ends, and later its connection.
 */
import type { Follow } from "../service/event_log.ts";
import type { HttpResponse } from "../http/message.ts";

/** Records are written in pieces of this size; each must be read within the stall timeout. */
export const FOLLOW_PIECE_BYTES: number = 16 * 1024;

const FOLLOW_HEADERS: HttpResponse["headers"] = {
  "content-type": "application/x-ndjson",
  "cache-control": "no-store",
  "connection": "close",
};

const NOTHING = new Uint8Array(0);

/** The response to HEAD, which opens no session. */
export const FOLLOW_HEAD: HttpResponse = { status: 200, headers: FOLLOW_HEADERS, body: null };

export function followResponse(follow: Follow): HttpResponse {
  let record: Uint8Array = NOTHING;
  /** The last record, once the session has ended while another is being sent. */
  let end: Uint8Array = NOTHING;
  let isOver = false;
  // Not a generator, whose `return()` would block while a commit is awaited.
  const pieces: AsyncIterator<Uint8Array, undefined> = {
    async next() {
      if (record.length === 0 && !isOver) {
        const next = await follow.next();
        if (next === null) isOver = true;
        else record = next;
      }
      if (record.length === 0) [record, end] = [end, NOTHING];
      if (record.length === 0) {
        follow.close();
        return { done: true, value: undefined };
      }
      const value = record;
      if (value.length > FOLLOW_PIECE_BYTES) {
        record = value.subarray(FOLLOW_PIECE_BYTES);
        return { done: false, value: value.subarray(0, FOLLOW_PIECE_BYTES) };
      }
      // An empty view of the record would keep its whole buffer alive.
      record = NOTHING;
      // Return the record itself, not a view: `chunkOf()` shares chunks only for identical arrays.
      return { done: false, value };
    },
    // deno-lint-ignore require-await -- an AsyncIterator's return() returns a promise
    async return() {
      isOver = true;
      record = end = NOTHING;
      follow.close();
      return { done: true, value: undefined };
    },
  };
  /** Ends the session. The rest of the current record is still sent, so every line is complete. */
  const onStall = () => {
    end = follow.end("buffer_exceeded", "the client read nothing for too long");
    isOver = true;
  };
  const body = { [Symbol.asyncIterator]: () => pieces };
  return { status: 200, headers: FOLLOW_HEADERS, body, isEndless: true, onStall };
}
