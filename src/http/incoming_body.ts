/**
 * A request body, passed from its connection to its reader. Buffers at most one socket read and
 * pauses the socket until the reader has consumed it.
 */
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { BodyDecoder } from "./body_decoder.ts";
import { MalformedRequestError, StallError } from "./message.ts";
import type { StallWatch } from "./stall_watch.ts";
import type { Turns } from "../turns.ts";

export class IncomingBody {
  readonly #socket: Socket;
  /** Called when the reader first requests the body. */
  #onWanted: (() => void) | null;
  readonly #decoder: BodyDecoder;
  readonly #turns: Turns;
  readonly #stallWatch: StallWatch;
  /** Whether the last bytes held less content than framing, which takes long to decode. */
  #isSlow = false;
  #waiting: Buffer | null = null;
  /** Why the body ended early; null if it has not. */
  #error: Error | null = null;
  /** Wakes the waiting reader. */
  #wake: (() => void) | null = null;

  constructor(
    declaredBytes: number | null,
    socket: Socket,
    turns: Turns,
    stallWatch: StallWatch,
    onWanted: () => void,
  ) {
    this.#turns = turns;
    this.#stallWatch = stallWatch;
    this.#decoder = new BodyDecoder(declaredBytes);
    this.#socket = socket;
    this.#onWanted = onWanted;
  }

  get isComplete(): boolean {
    return this.#decoder.isComplete;
  }

  /**
   * Decodes received bytes and returns the offset where decoding stopped. The reader receives any
   * error. After an error, all bytes are dropped, since the next request's start is unknown.
   */
  push(bytes: Buffer): number {
    if (this.#error !== null) return bytes.length;
    let end = bytes.length;
    try {
      const decoded = this.#decoder.decode(bytes);
      const { content } = decoded;
      end = decoded.end;
      this.#isSlow = content.length * 2 < end;
      if (content.length > 0) {
        this.#waiting = this.#waiting === null ? content : Buffer.concat([this.#waiting, content]);
      }
    } catch (error) {
      if (!(error instanceof MalformedRequestError)) throw error;
      this.fail(error);
    }
    if (this.isComplete || this.#waiting !== null) this.#wakeReader();
    if (this.#waiting !== null && !this.isComplete) this.#socket.pause();
    return end;
  }

  /** Ends the body early; the reader receives the error. */
  fail(error: Error): void {
    if (this.isComplete) return;
    this.#error ??= error;
    this.#wakeReader();
  }

  /**
   * Returns the next piece; null at the end.
   * @throws {StallError} if it does not arrive in time, or the error passed to `fail()`.
   */
  read(): Buffer | null | Promise<Buffer | null> {
    this.#onWanted?.();
    this.#onWanted = null;
    const piece = this.#waiting;
    this.#waiting = null;
    if (piece !== null || this.isComplete) return piece;
    if (this.#error !== null) throw this.#error;
    const arrival = new Promise<void>((resolve) => this.#wake = resolve);
    // Otherwise, up to 32 reads would be decoded before another connection is served.
    if (this.#isSlow) void this.#turns.next().then(() => this.#resume());
    else this.#socket.resume();
    const stall = () => this.fail(new StallError(`no data for ${this.#stallWatch.timeoutMs} ms`));
    this.#stallWatch.start(stall);
    return arrival.then(() => {
      this.#stallWatch.stop(stall);
      return this.read();
    });
  }

  #resume(): void {
    if (this.#wake !== null) this.#socket.resume();
  }

  #wakeReader(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
