/**
 * A follower that counts its events without parsing them and uses a shared read buffer, because a
 * thousand followers share the CPU with the measured server.
 */
import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";

/** The start of each event in a record. It occurs nowhere else in the benchmarks' events. */
const EVENT_START = Buffer.from('{"event_id":"');
const CAUGHT_UP = Buffer.from('"type":"caught_up"');
/** A chunk of the response ends with a record, so data that ends like this is complete. */
const RECORD_END = Buffer.from("}\n\r\n");
/** Maximum size of the members after the events in a record. */
const RECORD_TAIL_BYTES = 256;

/** A read buffer shared by all followers; each processes it before the next one reads. */
const READ_BUFFER = Buffer.alloc(64 * 1024);
const NOTHING = Buffer.alloc(0);

const HEAD_OK = "HTTP/1.1 200";

/**
 * Called with the number of events that have arrived.
 * @param recordEnd the end of the last record; its buffer is reused after the call.
 */
export type OnEvents = (events: number, recordEnd: Buffer) => void;

export class FollowerClient {
  readonly #socket: Socket;
  readonly #onEvents: OnEvents;
  readonly #onFailure: (error: Error) => void;
  #onCaughtUp: (() => void) | null;
  /** The end of the data read so far, since a match may span two reads. */
  #tail: Buffer = NOTHING;
  #anyData = false;
  /** Events in a record that may be incomplete. */
  #begun = 0;

  private constructor(
    socket: Socket,
    onEvents: OnEvents,
    settle: { onCaughtUp: () => void; onFailure: (error: Error) => void },
  ) {
    this.#socket = socket;
    this.#onEvents = onEvents;
    this.#onCaughtUp = settle.onCaughtUp;
    this.#onFailure = settle.onFailure;
    socket.on("error", (error) => this.#onFailure(error));
    socket.on("close", () => this.#onFailure(new Error("the server closed a follow response")));
  }

  /**
   * Follows the log after an event, or from the beginning if it is null. Resolves when the follower
   * has caught up.
   * @param filter query parameters, each preceded by `&`.
   * @param onFailure called if the response ends after the follower has caught up.
   * @throws {Error} if the follow was rejected or ended before that. The connection is then closed.
   */
  static open(
    socketPath: string,
    after: string | null,
    onEvents: OnEvents,
    onFailure: (error: Error) => void,
    filter = "",
  ): Promise<FollowerClient> {
    const from = `${filter}${after === null ? "" : `&after=${after}`}`;
    const request = `GET /v1/events?follow=true${from} HTTP/1.1\r\nHost: bench\r\n\r\n`;
    return new Promise((resolve, reject) => {
      let isOpen = false;
      const onread = {
        buffer: READ_BUFFER,
        callback(bytes: number) {
          follower.#take(READ_BUFFER.subarray(0, bytes));
          return true;
        },
      };
      const socket = connect({ path: socketPath, onread }, () => socket.write(request));
      const follower: FollowerClient = new FollowerClient(socket, onEvents, {
        onCaughtUp: () => {
          isOpen = true;
          resolve(follower);
        },
        onFailure: (error) => {
          if (!isOpen) follower.close();
          reject(error);
          onFailure(error);
        },
      });
    });
  }

  /** Stops reading, so that the server's writes block. */
  pause(): void {
    this.#socket.pause();
  }

  close(): void {
    this.#socket.removeAllListeners();
    this.#socket.on("error", () => {});
    this.#socket.destroy();
  }

  #take(data: Buffer): void {
    if (!this.#anyData) this.#takeHead(data);
    const bytes = this.#tail.length === 0 ? data : Buffer.concat([this.#tail, data]);
    let position = 0;
    for (let at = bytes.indexOf(EVENT_START); at >= 0; at = bytes.indexOf(EVENT_START, position)) {
      this.#begun += 1;
      position = at + EVENT_START.length;
    }
    if (this.#onCaughtUp !== null && bytes.includes(CAUGHT_UP)) {
      this.#onCaughtUp();
      this.#onCaughtUp = null;
    }
    if (endsRecord(bytes)) {
      this.#tail = NOTHING;
      const events = this.#begun;
      this.#begun = 0;
      if (events > 0) this.#tell(events, bytes.subarray(-RECORD_TAIL_BYTES));
    } else {
      this.#tail = Buffer.from(
        bytes.subarray(Math.max(position, bytes.length - RECORD_TAIL_BYTES)),
      );
    }
  }

  #tell(events: number, recordEnd: Buffer): void {
    try {
      this.#onEvents(events, recordEnd);
    } catch (error) {
      this.#onFailure(error as Error);
    }
  }

  #takeHead(data: Buffer): void {
    this.#anyData = true;
    const head = data.toString("latin1", 0, HEAD_OK.length);
    if (head !== HEAD_OK) this.#onFailure(new Error(`follow was refused: ${data}`));
  }
}

function endsRecord(bytes: Buffer): boolean {
  return bytes.length >= RECORD_END.length &&
    bytes.compare(RECORD_END, 0, RECORD_END.length, bytes.length - RECORD_END.length) === 0;
}
