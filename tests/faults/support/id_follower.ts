/**
 * A follower that keeps nothing but the ids of its events, as bytes, without parsing a line: two
 * hundred of them share the machine with the server they follow.
 */
import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";

/** Starts each event of a record, and is in no payload of the test. */
const EVENT_START = Buffer.from('{"event_id":"');
export const ID_BYTES = 36;
const HEAD_END = Buffer.from("\r\n\r\n");
const CRLF_BYTES = 2;
const LF = 0x0a;
const NOTHING = Buffer.alloc(0);

/** What all followers read into: each has used it when the next one reads. */
const READ_BUFFER = Buffer.alloc(64 * 1024);

export class IdFollower {
  readonly #socket: Socket;
  /** Ids of the events, one after the other. */
  readonly ids: Buffer;
  #idBytes = 0;
  /** What came of a head, or of the line before a chunk, that is not all there. */
  #line: Buffer = NOTHING;
  #isPastHead = false;
  /** What is missing of the chunk. */
  #leftBytes = 0;
  /** The end of the content so far, for what lies across two pieces. */
  #tail: Buffer = NOTHING;
  readonly #full = Promise.withResolvers<void>();

  private constructor(socket: Socket, events: number) {
    this.#socket = socket;
    this.ids = Buffer.alloc(events * ID_BYTES);
    // Whoever waits for the end sees it, and perhaps nobody does yet.
    this.#full.promise.catch(() => {});
    socket.on("error", (error) => this.#full.reject(error));
    socket.on("close", () => this.#full.reject(new Error(`ended after ${this.events} events`)));
  }

  /** Follows the whole log; resolves when the request is sent. @param events that are to come. */
  static open(socketPath: string, events: number): Promise<IdFollower> {
    return new Promise((resolve, reject) => {
      const onread = {
        buffer: READ_BUFFER,
        callback(bytes: number) {
          follower.#take(READ_BUFFER.subarray(0, bytes));
          return true;
        },
      };
      const socket = connect({ path: socketPath, onread });
      const follower = new IdFollower(socket, events);
      socket.on("error", reject);
      socket.once("connect", () => {
        socket.write("GET /v1/events?follow=true HTTP/1.1\r\nHost: test\r\n\r\n");
        resolve(follower);
      });
    });
  }

  /** Events that have come. */
  get events(): number {
    return this.#idBytes / ID_BYTES;
  }

  /** Reads nothing until `resume()`. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Resolves when all events have come. @throws {Error} when the response ends before. */
  full(): Promise<void> {
    return this.#full.promise;
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) {
      const end = this.#leftBytes > 0 ? this.#takeContent(rest) : this.#takeLine(rest);
      rest = rest.subarray(end);
    }
  }

  /** Returns how much was taken. */
  #takeContent(bytes: Buffer): number {
    const taken = Math.min(this.#leftBytes, bytes.length);
    this.#leftBytes -= taken;
    this.#collect(bytes.subarray(0, taken));
    return taken;
  }

  /** The head of the response, or the line end of a chunk and the size of the next. */
  #takeLine(bytes: Buffer): number {
    const line = Buffer.concat([this.#line, bytes]);
    const end = this.#isPastHead
      ? line.indexOf(LF, CRLF_BYTES) + 1
      : line.indexOf(HEAD_END) + CRLF_BYTES;
    if (end < CRLF_BYTES + 1) {
      this.#line = line;
      return bytes.length;
    }
    const taken = end - this.#line.length;
    this.#line = NOTHING;
    if (this.#isPastHead) this.#leftBytes = parseInt(line.toString("latin1", CRLF_BYTES, end), 16);
    this.#isPastHead = true;
    return taken;
  }

  #collect(piece: Buffer): void {
    const bytes = this.#tail.length === 0 ? piece : Buffer.concat([this.#tail, piece]);
    let position = 0;
    for (;;) {
      const at = bytes.indexOf(EVENT_START, position);
      const idEnd = at + EVENT_START.length + ID_BYTES;
      if (at < 0 || idEnd > bytes.length) {
        const kept = at < 0 ? Math.max(position, bytes.length - EVENT_START.length + 1) : at;
        this.#tail = Buffer.from(bytes.subarray(kept));
        return;
      }
      this.#idBytes += bytes.copy(this.ids, this.#idBytes, idEnd - ID_BYTES, idEnd);
      position = idEnd;
      if (this.#idBytes === this.ids.length) this.#full.resolve();
    }
  }
}
