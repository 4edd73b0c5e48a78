/**
 * Writes a follow response record by record, at the pace of the client. A client that takes nothing
 * for too long while a record waits loses its session and not its place: when it reads again it
 * finds the end record, with the event to resume after.
 */
import type { Follow } from "../service/event_log.ts";
import type { HttpResponse } from "../http/message.ts";
import { type StallWatch, Wait } from "../http/stall_watch.ts";

/** What a follower must take within FOLLOW_STALL_TIMEOUT_MS; records are written in such pieces. */
export const FOLLOW_PIECE_BYTES: number = 16 * 1024;

const FOLLOW_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "application/x-ndjson",
  "cache-control": "no-store",
  "connection": "close",
};

const NOTHING = new Uint8Array(0);

/** What HEAD gets: no session is opened for it. */
export const FOLLOW_HEAD: HttpResponse = { status: 200, headers: FOLLOW_HEADERS, body: null };

/** @param stallWatch gives up on a client that does not take a piece. */
export function followResponse(follow: Follow, stallWatch: StallWatch): HttpResponse {
  const body = { [Symbol.asyncIterator]: () => new RecordPieces(follow, stallWatch) };
  return { status: 200, headers: FOLLOW_HEADERS, body, isEndless: true };
}

/**
 * The records in pieces small enough that taking one means that the client reads. An object and not
 * a generator: the end of a generator that waits for a commit would wait too.
 */
class RecordPieces implements AsyncIterator<Uint8Array, undefined> {
  readonly #follow: Follow;
  readonly #stallWatch: StallWatch;
  /** For the client to take the last piece. */
  readonly #wait: Wait = new Wait(() => this.#stall());
  #record: Uint8Array = NOTHING;
  #isOver = false;

  constructor(follow: Follow, stallWatch: StallWatch) {
    this.#follow = follow;
    this.#stallWatch = stallWatch;
    stallWatch.add(this.#wait);
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#wait.stop();
    if (this.#record.length === 0 && !this.#isOver) {
      const record = await this.#follow.next();
      if (record === null) this.#end();
      else this.#record = record;
    }
    if (this.#record.length === 0) return { done: true, value: undefined };
    if (!this.#isOver) this.#wait.start();
    return { done: false, value: this.#takePiece() };
  }

  #takePiece(): Uint8Array {
    const record = this.#record;
    if (record.length <= FOLLOW_PIECE_BYTES) {
      this.#record = NOTHING;
      return record;
    }
    this.#record = record.subarray(FOLLOW_PIECE_BYTES);
    return record.subarray(0, FOLLOW_PIECE_BYTES);
  }

  // deno-lint-ignore require-await -- an AsyncIterator's return() gives a promise
  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#end();
    this.#record = NOTHING;
    this.#follow.close();
    return { done: true, value: undefined };
  }

  /** What is left of a record is still sent, so that every line is whole. */
  #stall(): void {
    const end = this.#follow.end("buffer_exceeded", "the client took no bytes for too long");
    this.#end();
    const rest = new Uint8Array(this.#record.length + end.length);
    rest.set(this.#record);
    rest.set(end, this.#record.length);
    this.#record = rest;
  }

  /** From now on only what is left of the record is given. */
  #end(): void {
    this.#isOver = true;
    this.#stallWatch.remove(this.#wait);
  }
}
