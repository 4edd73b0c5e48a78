/** A client that decides each byte it sends and when it reads, by `node:net`. */
import { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";
import { parseResponse, type RawResponse } from "./raw_response.ts";

/** How a wait for something that must come is ended when it does not. */
const WAIT_TIMEOUT_MS = 30_000;

export class RawConnection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #hasEnded = false;
  #error: Error | null = null;
  #wake: () => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      this.#wake();
    });
    socket.on("error", (error) => {
      this.#error = error;
      this.#end();
    });
    socket.on("end", () => this.#end());
    socket.on("close", () => this.#end());
  }

  static open(socketPath: string): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(socketPath);
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new RawConnection(socket));
      });
    });
  }

  /** What went wrong with the connection. */
  get error(): Error | null {
    return this.#error;
  }

  /** Stops reading, so that what the server sends stays on its side. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Whether the server has ended it, or it has failed. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** What has come and was not read. */
  get received(): Buffer {
    return this.#received;
  }

  /** Resolves when the system has taken the bytes, or the connection is gone. */
  write(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = () => reject(new Error("what was written is not read"));
      const timer = setTimeout(late, WAIT_TIMEOUT_MS);
      this.#socket.write(bytes, () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Ends the client's side after what is written; the server's is read on. */
  endInput(): void {
    this.#socket.end();
  }

  /**
   * Reads one response, whole; null when the connection ended before it began.
   * @param method of the request; null where that may be anything.
   */
  async readResponse(method: string | null = "GET"): Promise<RawResponse | null> {
    for (;;) {
      const parsed = parseResponse(this.#received, method, this.#hasEnded);
      if (parsed !== null) {
        this.#received = this.#received.subarray(parsed.endBytes);
        return parsed.response;
      }
      if (this.#hasEnded) return null;
      await this.#change("a response");
    }
  }

  /** A response that goes on, as far as it has come when this text is in it. */
  async readThrough(text: string): Promise<RawResponse> {
    while (!this.#received.includes(text) && !this.#hasEnded) await this.#change(text);
    const isOver = true;
    return parseResponse(this.#received, "GET", isOver)!.response;
  }

  /** Resolves when `bytes` more have come. */
  async receive(bytes: number): Promise<void> {
    while (this.#received.length < bytes && !this.#hasEnded) await this.#change("more bytes");
  }

  /** Resolves when the server has ended the connection. */
  async ended(): Promise<void> {
    while (!this.#hasEnded) await this.#change("the end of the connection");
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  #change(awaited: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`${awaited} did not come; received: ${this.#received.toString()}`)),
        WAIT_TIMEOUT_MS,
      );
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Opens a connection, sends bytes, reads the first response and hangs up. */
export async function exchange(
  socketPath: string,
  bytes: string | Uint8Array,
): Promise<RawResponse | null> {
  const connection = await RawConnection.open(socketPath);
  await connection.write(bytes);
  const response = await connection.readResponse();
  connection.destroy();
  return response;
}
