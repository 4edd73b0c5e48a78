/** A connection that sends prepared bytes and reads responses, without an HTTP library. */
import type { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";
import { type RawResponse, ResponseParser } from "./response_parser.ts";

export class RawClient {
  readonly #socket: Socket;
  readonly #parser = new ResponseParser();
  #onResponse: ((response: RawResponse) => void) | null = null;
  #onFailure: (error: Error) => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (data: Buffer) => this.#take(data));
    socket.on("error", (error) => this.#onFailure(error));
    socket.on("close", () => this.#onFailure(new Error("the server closed the connection")));
  }

  /** @throws {Error} with the system's `code`, such as ENOENT or ECONNREFUSED. */
  static connect(socketPath: string): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = connect(socketPath);
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new RawClient(socket));
      });
    });
  }

  /**
   * Sends a request. Only one may be outstanding. The method uses callbacks, because a promise
   * would be a significant part of a small request's cost.
   */
  send(
    request: Buffer,
    onResponse: (response: RawResponse) => void,
    onFailure: (error: Error) => void,
  ): void {
    this.#onResponse = onResponse;
    this.#onFailure = onFailure;
    this.#socket.write(request);
  }

  /** Sends a request and waits for its response. */
  exchange(request: Buffer): Promise<RawResponse> {
    return new Promise((resolve, reject) => this.send(request, resolve, reject));
  }

  close(): void {
    this.#onFailure = () => {};
    this.#socket.destroy();
  }

  #take(data: Buffer): void {
    let response: RawResponse | null;
    try {
      response = this.#parser.push(data);
    } catch (error) {
      this.#onFailure(error as Error);
      return;
    }
    if (response === null) return;
    const onResponse = this.#onResponse;
    this.#onResponse = null;
    if (onResponse === null) this.#onFailure(new Error("received an unexpected response"));
    else onResponse(response);
  }
}
