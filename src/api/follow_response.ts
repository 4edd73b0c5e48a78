/**
 * Writes a follow response record by record, at the client's pace. If a client reads nothing for
 * too long while a record is pending, its session ends, and later its connection.
 */
import { Buffer } from "node:buffer";
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
  const pieces = new RecordPieces(follow);
  const body = { [Symbol.asyncIterator]: () => pieces };
  const onStall = () => pieces.stall();
  return { status: 200, headers: FOLLOW_HEADERS, body, isEndless: true, onStall };
}

/** Not a generator, whose `return()` would block while a commit is awaited. */
class RecordPieces implements AsyncIterator<Uint8Array, undefined> {
  readonly #follow: Follow;
  #record: Uint8Array = NOTHING;
  #isOver = false;

  constructor(follow: Follow) {
    this.#follow = follow;
  }

  /** Ends the session. The rest of the current record is still sent, so every line is complete. */
  stall(): void {
    const end = this.#follow.end("buffer_exceeded", "the client read nothing for too long");
    this.#isOver = true;
    this.#record = Buffer.concat([this.#record, end]);
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#record.length === 0 && !this.#isOver) {
      const record = await this.#follow.next();
      if (record === null) this.#isOver = true;
      else this.#record = record;
    }
    if (this.#record.length === 0) return { done: true, value: undefined };
    const record = this.#record;
    if (record.length > FOLLOW_PIECE_BYTES) {
      this.#record = record.subarray(FOLLOW_PIECE_BYTES);
      return { done: false, value: record.subarray(0, FOLLOW_PIECE_BYTES) };
    }
    // An empty view of the record would keep its whole buffer alive.
    this.#record = NOTHING;
    // Return the record itself, not a view: `chunkOf()` shares chunks only for identical arrays.
    return { done: false, value: record };
  }

  // deno-lint-ignore require-await -- an AsyncIterator's return() returns a promise
  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#isOver = true;
    this.#record = NOTHING;
    this.#follow.close();
    return { done: true, value: undefined };
  }
}
