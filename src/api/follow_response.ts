/**
 * Writes a follow response record by record, at the client's pace. If a client reads nothing for
 * too long while a record is pending, its session ends.
 */
import { Buffer } from "node:buffer";
import type { Follow } from "../service/event_log.ts";
import type { HttpResponse } from "../http/message.ts";
import type { StallWatch } from "../http/stall_watch.ts";

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

/** @param stallWatch ends the session of a client that does not read a piece in time. */
export function followResponse(follow: Follow, stallWatch: StallWatch): HttpResponse {
  const body = { [Symbol.asyncIterator]: () => new RecordPieces(follow, stallWatch) };
  return { status: 200, headers: FOLLOW_HEADERS, body, isEndless: true };
}

/** Not a generator, whose `return()` would block while a commit is awaited. */
class RecordPieces implements AsyncIterator<Uint8Array, undefined> {
  readonly #follow: Follow;
  /** Expires if the client does not read the most recent piece in time. */
  readonly #stallWatch: StallWatch;
  #record: Uint8Array = NOTHING;
  #isOver = false;
  /** Ends the session. The rest of the current record is still sent, so every line is complete. */
  readonly #stall = () => {
    const end = this.#follow.end("buffer_exceeded", "the client read nothing for too long");
    this.#end();
    this.#record = Buffer.concat([this.#record, end]);
  };

  constructor(follow: Follow, stallWatch: StallWatch) {
    this.#follow = follow;
    this.#stallWatch = stallWatch;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#stallWatch.stop(this.#stall);
    if (this.#record.length === 0 && !this.#isOver) {
      const record = await this.#follow.next();
      if (record === null) this.#end();
      else this.#record = record;
    }
    if (this.#record.length === 0) return { done: true, value: undefined };
    if (!this.#isOver) this.#stallWatch.start(this.#stall);
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
    this.#end();
    this.#record = NOTHING;
    this.#follow.close();
    return { done: true, value: undefined };
  }

  /** Stops reading further records; the rest of the current one is still sent. */
  #end(): void {
    this.#isOver = true;
    this.#stallWatch.stop(this.#stall);
  }
}
