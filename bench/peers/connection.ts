/**
 * A connection to a peer or to the service. It sends prepared bytes and only skims the replies, so
 * that the client's cost is the same for all subjects.
 */
import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";

/** A read buffer shared by all connections; each processes it before the next one reads. */
const READ_BUFFER = Buffer.alloc(256 * 1024);

/** Finds the end of a reply. It copies any data it keeps. */
export interface Skimmer<Reply> {
  expect(replies: number): void;
  push(data: Buffer): Reply | null;
}

export class Connection<Reply> {
  readonly #socket: Socket;
  readonly #skimmer: Skimmer<Reply>;
  #onReply: ((reply: Reply) => void) | null = null;
  #onFailure: (error: Error) => void = () => {};

  private constructor(socket: Socket, skimmer: Skimmer<Reply>) {
    this.#socket = socket;
    this.#skimmer = skimmer;
    socket.on("error", (error) => this.#onFailure(error));
    socket.on("close", () => this.#onFailure(new Error("the peer closed the connection")));
  }

  /** @throws {Error} with the system's `code`, such as ENOENT or ECONNREFUSED. */
  static open<Reply>(socketPath: string, skimmer: Skimmer<Reply>): Promise<Connection<Reply>> {
    return new Promise((resolve, reject) => {
      let connection: Connection<Reply> | null = null;
      const callback = (bytes: number) => {
        if (connection !== null) connection.#take(READ_BUFFER.subarray(0, bytes));
        return true;
      };
      const socket = connect({ path: socketPath, onread: { buffer: READ_BUFFER, callback } });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        connection = new Connection(socket, skimmer);
        resolve(connection);
      });
    });
  }

  /** Sends requests that get `replies` replies in total. Only one exchange may be outstanding. */
  send(
    bytes: Buffer,
    replies: number,
    onReply: (reply: Reply) => void,
    onFailure: (error: Error) => void,
  ): void {
    this.#onReply = onReply;
    this.#onFailure = onFailure;
    this.#skimmer.expect(replies);
    this.#socket.write(bytes);
  }

  /** Sends a request and waits for the reply. */
  exchange(bytes: Buffer, replies = 1): Promise<Reply> {
    return new Promise((resolve, reject) => this.send(bytes, replies, resolve, reject));
  }

  /** @param farewell the protocol's closing message. */
  close(farewell?: Buffer): void {
    this.#onFailure = () => {};
    if (farewell === undefined) this.#socket.destroy();
    else this.#socket.end(farewell);
  }

  #take(data: Buffer): void {
    let reply: Reply | null;
    try {
      reply = this.#skimmer.push(data);
    } catch (error) {
      this.#onFailure(error as Error);
      return;
    }
    if (reply === null) return;
    const onReply = this.#onReply;
    this.#onReply = null;
    if (onReply === null) this.#onFailure(new Error("received an unexpected reply"));
    else onReply(reply);
  }
}
