/**
 * The body of a request, passed from its connection to its reader. Buffers at most one read of the
 * socket, and pauses the connection until the reader takes it.
 */
import { Buffer } from "node:buffer";
import { clearTimeout, setTimeout } from "node:timers";
import { DRAIN_BYTES_MAX, DRAIN_TIMEOUT_MS } from "../limits.ts";
import { type BodyDecoder, createBodyDecoder } from "./body_decoder.ts";

/** Flow control of the connection. */
export interface BodyFlow {
  pause(): void;
  resume(): void;
  /** Called when the reader first requests the body. */
  onWanted(): void;
}

export class IncomingBody {
  readonly #flow: BodyFlow;
  readonly #decoder: BodyDecoder;
  /** Null for a chunked body. */
  readonly #declaredBytes: number | null;
  #waiting: Buffer[] = [];
  #error: Error | null = null;
  #isWanted = false;
  /** Wakes the waiting reader. */
  #wake: (() => void) | null = null;
  #isDiscarded = false;
  #discardedBytes = 0;
  readonly #emit = (piece: Buffer) => this.#take(piece);

  constructor(declaredBytes: number | null, flow: BodyFlow) {
    this.#declaredBytes = declaredBytes;
    this.#decoder = createBodyDecoder(declaredBytes);
    this.#flow = flow;
  }

  get isComplete(): boolean {
    return this.#decoder.isComplete;
  }

  /** Whether the reader has requested the body. */
  get isWanted(): boolean {
    return this.#isWanted;
  }

  /** Why the body ended early; null if it has not. */
  get error(): Error | null {
    return this.#error;
  }

  /**
   * Decodes received bytes from `start`, and returns the end offset of the body. After an error it
   * consumes all bytes: the start of the next request is unknown.
   * @throws {MalformedRequestError}
   */
  push(bytes: Buffer, start: number): number {
    if (this.#error !== null) return bytes.length;
    const end = this.#decoder.decode(bytes, start, this.#emit);
    // Reading tiny chunks one by one would dominate the cost.
    if (this.#waiting.length > 1) this.#waiting = [Buffer.concat(this.#waiting)];
    if (this.isComplete || this.#waiting.length > 0) this.#wakeReader();
    if (this.#waiting.length > 0 && !this.isComplete) this.#flow.pause();
    return end;
  }

  /** Ends the body early; its reader gets the error. */
  fail(error: Error): void {
    if (this.isComplete) return;
    this.#error ??= error;
    this.#wakeReader();
  }

  /** Yields the body as it arrives. @throws the error of `fail()`. */
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

  /** Returns the whole body. @throws the error of `fail()`. */
  async bytes(): Promise<Buffer> {
    this.#want();
    if (this.isComplete && this.#waiting.length === 1) return this.#waiting.pop()!;
    // Copied, because keeping many tiny pieces costs far more memory than their bytes.
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
   * Drops the rest of the body, so that a client that sends before it reads can read its response.
   * Resolves to whether the body ended within the limits.
   */
  async discard(): Promise<boolean> {
    this.#isDiscarded = true;
    this.#waiting = [];
    const timer = setTimeout(() => this.fail(new Error("drain timed out")), DRAIN_TIMEOUT_MS);
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
    if (this.#discardedBytes > DRAIN_BYTES_MAX) this.fail(new Error("body too large to drain"));
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
