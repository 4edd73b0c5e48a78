/**
 * The connections of a `node:http` server, so that a shutdown can end each as soon as nothing is
 * under way on it: `closeIdleConnections()` leaves those that never made a request.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

export class NodeConnections {
  /** Requests under way by connection. */
  readonly #busy: Map<Socket, number> = new Map();
  #isClosing = false;

  /** Whether a response ends its connection. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  opened(socket: Socket): void {
    this.#busy.set(socket, 0);
    socket.once("close", () => this.#busy.delete(socket));
  }

  requestCame(socket: Socket): void {
    this.#busy.set(socket, (this.#busy.get(socket) ?? 0) + 1);
  }

  /** Called when all of the response is handed over. */
  responseEnded(socket: Socket, outgoing: ServerResponse): void {
    const busy = this.#busy.get(socket);
    if (busy === undefined) return;
    this.#busy.set(socket, busy - 1);
    if (!this.#isClosing || busy > 1) return;
    if (outgoing.writableFinished) socket.destroySoon();
    else outgoing.once("finish", () => socket.destroySoon());
  }

  /**
   * Ends the connections without a request under way, after what is still to be written to them;
   * the others end with their last response.
   */
  close(): void {
    this.#isClosing = true;
    for (const [socket, busy] of this.#busy) {
      if (busy === 0) socket.destroySoon();
    }
  }
}
