/**
 * Followers that count their events without parsing them and use a shared read buffer, because a
 * thousand of them share the CPU with the measured server. They are opened and fail together.
 */
import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";

/** The start of each event in a record. It occurs nowhere else in the benchmarks' events. */
const EVENT_START = Buffer.from('{"event_id":"');
const CAUGHT_UP = Buffer.from('"type":"caught_up"');
/** What may be the beginning of one of them, at the end of a read. */
const KEPT_BYTES = CAUGHT_UP.length - 1;
const HEAD_OK = "HTTP/1.1 200";

/** A read buffer shared by all followers; each processes it before the next one reads. */
const READ_BUFFER = Buffer.alloc(64 * 1024);
/** Maximum number of concurrent opens, because a socket's backlog is short. */
const OPENING_MAX = 64;

/** Called with the number of events that have arrived. */
export type OnEvents = (events: number) => void;

export interface FollowersOptions {
  socketPath: string;
  count: number;
  /** The event after which to start; null for the beginning. */
  after: string | null;
  /** Query parameters of a follower, each preceded by `&`; none by default. */
  filter?: (place: number) => string;
  /** Creates the receiver of one follower's events; by default, they are ignored. */
  receiver?: () => OnEvents;
}

export class Followers {
  readonly #options: FollowersOptions;
  readonly #sockets: Socket[] = [];
  readonly #failure = Promise.withResolvers<never>();

  private constructor(options: FollowersOptions) {
    this.#options = options;
    // Callers await this only after all are open; an earlier rejection must not go unhandled.
    this.#failure.promise.catch(() => {});
  }

  /**
   * Opens followers; resolves when all have caught up.
   * @throws {Error} if a follower could not be opened or its response ended. All are then closed.
   */
  static async open(options: FollowersOptions): Promise<Followers> {
    const followers = new Followers(options);
    try {
      for (let place = 0; place < options.count; place += OPENING_MAX) {
        const count = Math.min(OPENING_MAX, options.count - place);
        const openings = Array.from({ length: count }, (_, n) => followers.#open(place + n));
        await Promise.race([followers.failed, Promise.all(openings)]);
      }
    } catch (error) {
      followers.close();
      throw error;
    }
    return followers;
  }

  /** Rejects when a response ends. */
  get failed(): Promise<never> {
    return this.#failure.promise;
  }

  close(): void {
    for (const socket of this.#sockets) {
      socket.removeAllListeners().on("error", () => {}).destroy();
    }
  }

  /** Resolves when the follower has caught up. */
  #open(place: number): Promise<void> {
    const { socketPath, after, receiver = () => () => {}, filter = () => "" } = this.#options;
    const parameters = filter(place) + (after === null ? "" : `&after=${after}`);
    const request = `GET /v1/events?follow=true${parameters} HTTP/1.1\r\nHost: bench\r\n\r\n`;
    const fail = this.#failure.reject;
    return new Promise((resolve) => {
      const take = takerOf(receiver(), resolve);
      const callback = (bytes: number) => {
        try {
          take(READ_BUFFER.subarray(0, bytes));
        } catch (error) {
          fail(error);
        }
        return true;
      };
      const socket = connect({ path: socketPath, onread: { buffer: READ_BUFFER, callback } });
      socket.on("error", fail);
      socket.on("close", () => fail(new Error("the server closed a follow response")));
      socket.write(request);
      this.#sockets.push(socket);
    });
  }
}

/** Returns a function that takes the data of one response. */
function takerOf(onEvents: OnEvents, onCaughtUp: () => void): (data: Buffer) => void {
  let isBegun = false;
  let kept: Buffer = Buffer.alloc(0);
  return (data) => {
    const isRefused = !isBegun && data.toString("latin1", 0, HEAD_OK.length) !== HEAD_OK;
    if (isRefused) throw new Error(`follow was refused: ${data}`);
    isBegun = true;
    const bytes = Buffer.concat([kept, data]);
    let [events, end] = [0, 0];
    for (let at = bytes.indexOf(EVENT_START); at >= 0; at = bytes.indexOf(EVENT_START, end)) {
      events += 1;
      end = at + EVENT_START.length;
    }
    if (bytes.includes(CAUGHT_UP)) onCaughtUp();
    kept = bytes.subarray(Math.max(end, bytes.length - KEPT_BYTES));
    if (events > 0) onEvents(events);
  };
}
