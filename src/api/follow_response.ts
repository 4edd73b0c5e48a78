/**
 * Writes a follow response record by record, at the client's pace. If a client reads nothing for
 * too long while a record is pending, its session ends, and later its connection.
 */
import type { Follow } from "../service/event_log.ts";
import type { HttpResponse } from "../http/message.ts";

/** The response to HEAD, which opens no session. */
export const FOLLOW_HEAD: HttpResponse = {
  status: 200,
  headers: {
    "content-type": "application/x-ndjson",
    "cache-control": "no-store",
    "connection": "close",
  },
  body: null,
};

export function followResponse(follow: Follow): HttpResponse {
  /** The last record, once the session has ended while another is being sent. */
  let end: Uint8Array | null = null;
  const close = () => {
    follow.close();
    return Promise.resolve({ done: true as const, value: undefined });
  };
  // Not a generator, whose `return()` would block while a commit is awaited.
  const records: AsyncIterator<Uint8Array, undefined> = {
    async next() {
      const record = end ?? await follow.next();
      end = null;
      return record === null ? await close() : { done: false, value: record };
    },
    return: close,
  };
  /** Ends the session. The rest of the current record is still sent, so every line is complete. */
  const onStall = () => {
    end = follow.end("buffer_exceeded", "the client read nothing for too long");
  };
  const body = { [Symbol.asyncIterator]: () => records };
  return { ...FOLLOW_HEAD, body, isEndless: true, onStall };
}
