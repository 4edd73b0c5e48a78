/**
 * The body of a request of `node:http`, read piece by piece or at once; paused while nobody asks.
 */
import { Buffer } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { ConnectionLostError } from "../http/message.ts";
import type { BodySource } from "./drain.ts";

export class NodeBody implements BodySource {
  readonly #incoming: IncomingMessage;
  /** Pieces that came and were not asked for yet: one, when the request had been paused. */
  readonly #arrived: Buffer[] = [];
  #isStarted = false;
  #settle: (() => void) | null = null;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
  }

  async next(): Promise<Uint8Array | null> {
    if (!this.#isStarted) this.#start();
    const incoming = this.#incoming;
    while (this.#arrived.length === 0 && !incoming.readableEnded) {
      if (incoming.destroyed) throw connectionLost();
      await new Promise<void>((resolve) => {
        this.#settle = resolve;
        incoming.resume();
      });
    }
    return this.#arrived.shift() ?? null;
  }

  cancel(): void {
    this.#incoming.destroy();
  }

  /** The whole body. Only where `next()` was not called. */
  bytes(): Promise<Uint8Array> {
    const incoming = this.#incoming;
    if (incoming.destroyed) return Promise.reject(connectionLost());
    return new Promise((resolve, reject) => {
      const pieces: Buffer[] = [];
      incoming.on("data", (piece: Buffer) => pieces.push(piece));
      incoming.on("end", () => resolve(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)));
      // Comes after every end too, and making an error is dear.
      incoming.on("close", () => {
        if (!incoming.readableEnded) reject(connectionLost());
      });
    });
  }

  #start(): void {
    this.#isStarted = true;
    const wake = () => {
      this.#settle?.();
      this.#settle = null;
    };
    this.#incoming.on("data", (piece: Buffer) => {
      this.#arrived.push(piece);
      this.#incoming.pause();
      wake();
    });
    this.#incoming.on("end", wake);
    this.#incoming.on("close", wake);
  }
}

function connectionLost(): ConnectionLostError {
  return new ConnectionLostError("the connection ended before the body did");
}
