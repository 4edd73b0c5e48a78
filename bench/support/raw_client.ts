/** A connection that sends prepared bytes and reads responses, without an HTTP library. */
import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";
import { type RawResponse, ResponseParser } from "./response_parser.ts";

/** A read buffer shared by all clients; each parses its data before the next one reads. */
const READ_BUFFER = Buffer.alloc(256 * 1024);

export class RawClient {
  readonly #socket: Socket;
  readonly #parser = new ResponseParser();
  #onResponse: ((response: RawResponse) => void) | null = null;
  #onFailure: (error: Error) => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("error", (error) => this.#onFailure(error));
    socket.on("close", () => this.#onFailure(new Error("the server closed the connection")));
  }

  /** @throws {Error} with the system's `code`, such as ENOENT or ECONNREFUSED. */
  static connect(socketPath: string): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      let client: RawClient | null = null;
      const callback = (bytes: number) => {
        if (client !== null) client.#take(READ_BUFFER.subarray(0, bytes));
        return true;
      };
      const socket = connect({ path: socketPath, onread: { buffer: READ_BUFFER, callback } });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        client = new RawClient(socket);
        resolve(client);
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
    try {
      const response = this.#parser.push(data);
      if (response === null) return;
      const onResponse = this.#onResponse;
      this.#onResponse = null;
      if (onResponse === null) throw new Error("received an unexpected response");
      onResponse(response);
    } catch (error) {
      this.#onFailure(error as Error);
    }
  }
}
