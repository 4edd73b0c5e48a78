/**
 * The body of one request, between its connection and its reader. At most one read of the socket is
 * buffered here; the connection is paused until the reader takes it.
 */
import { Buffer } from "node:buffer";
import { clearTimeout, setTimeout } from "node:timers";
import { DRAIN_BYTES_MAX, DRAIN_TIMEOUT_MS } from "../limits.ts";
import { type BodyDecoder, createBodyDecoder } from "./body_decoder.ts";

/** What a body asks of its connection. */
export interface BodyFlow {
  /** Stops reading from the socket. */
  pause(): void;
  /** Resumes reading from the socket. */
  resume(): void;
  /** The reader asks for the body, for the first time. */
  onWanted(): void;
}

export class IncomingBody {
  readonly #flow: BodyFlow;
  readonly #decoder: BodyDecoder;
  /** Null for one in chunks. */
  readonly #declaredBytes: number | null;
  #waiting: Buffer[] = [];
  #error: Error | null = null;
  #isWanted = false;
  /** Wakes the reader that waits for a piece or the end. */
  #wake: (() => void) | null = null;
  /** Whether pieces are dropped, and how many bytes of them were. */
  #isDiscarded = false;
  #discardedBytes = 0;
  readonly #emit = (piece: Buffer) => this.#take(piece);

  constructor(declaredBytes: number | null, flow: BodyFlow) {
    this.#declaredBytes = declaredBytes;
    this.#decoder = createBodyDecoder(declaredBytes);
    this.#flow = flow;
  }

  /** Whether all of it has come. */
  get isComplete(): boolean {
    return this.#decoder.isComplete;
  }

  /** Whether the reader has asked for it. */
  get isWanted(): boolean {
    return this.#isWanted;
  }

  /** Why no more of it will come; null while it may. */
  get error(): Error | null {
    return this.#error;
  }

  /**
   * Takes what has come on the connection from `start` on; returns where the body ends in it. After
   * an error it never ends: the rest can't be told from the next request.
   * @throws {MalformedRequestError}
   */
  push(bytes: Buffer, start: number): number {
    if (this.#error !== null) return bytes.length;
    const end = this.#decoder.decode(bytes, start, this.#emit);
    // A reader that took tiny chunks one by one would cost more than all else.
    if (this.#waiting.length > 1) this.#waiting = [Buffer.concat(this.#waiting)];
    if (this.isComplete || this.#waiting.length > 0) this.#wakeReader();
    if (this.#waiting.length > 0 && !this.isComplete) this.#flow.pause();
    return end;
  }

  /** Ends the body where it is; its reader gets the error. */
  fail(error: Error): void {
    if (this.isComplete) return;
    this.#error ??= error;
    this.#wakeReader();
  }

  /** Its pieces, as they arrive. @throws {Error} that of `fail()`. */
  async *pieces(): AsyncGenerator<Buffer> {
    this.#want();
    for (;;) {
      const piece = this.#waiting.shift();
      if (piece !== undefined) yield piece;
      else if (this.isComplete) return;
      else if (this.#error !== null) throw this.#error;
      else await this.#arrival();
    }
  }

  /** All of it. @throws {Error} that of `fail()`. */
  async bytes(): Promise<Buffer> {
    this.#want();
    if (this.isComplete && this.#waiting.length === 1) return this.#waiting.pop()!;
    // A body that comes byte by byte is copied: each of its pieces costs much more than a byte.
    const whole = Buffer.allocUnsafeSlow(this.#declaredBytes ?? 0);
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    for await (const piece of this.pieces()) {
      if (this.#declaredBytes === null) chunks.push(piece);
      else whole.set(piece, sizeBytes);
      sizeBytes += piece.length;
    }
    return this.#declaredBytes === null ? Buffer.concat(chunks) : whole;
  }

  /**
   * Drops what is still to come, so that a client that sends before it reads gets to read its
   * response. Resolves at the end of the body; to false when it does not end within bounds.
   */
  async discard(): Promise<boolean> {
    this.#isDiscarded = true;
    this.#waiting = [];
    const timer = setTimeout(() => this.fail(new Error("not all came in time")), DRAIN_TIMEOUT_MS);
    try {
      while (!this.isComplete && this.#error === null) await this.#arrival();
      return this.isComplete;
    } finally {
      clearTimeout(timer);
    }
  }

  #take(piece: Buffer): void {
    if (!this.#isDiscarded) {
      this.#waiting.push(piece);
      return;
    }
    this.#discardedBytes += piece.length;
    if (this.#discardedBytes > DRAIN_BYTES_MAX) this.fail(new Error("too much to drop"));
  }

  #want(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.#flow.onWanted();
  }

  #arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.#flow.resume();
    });
  }

  #wakeReader(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
