/** A client on `node:net` that controls each byte it sends, and when it reads. */
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { parseResponse, type RawResponse } from "./raw_response.ts";

/** Time limit for data that must arrive. */
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

  /** Connects, and sends these bytes. */
  static async open(socketPath: string, bytes: string | Uint8Array = ""): Promise<RawConnection> {
    const socket = connect(socketPath);
    await once(socket, "connect");
    const connection = new RawConnection(socket);
    if (bytes.length > 0) await connection.write(bytes);
    return connection;
  }

  /** The error with which the connection failed. */
  get error(): Error | null {
    return this.#error;
  }

  /** Stops reading, so that data from the server stays in the server's buffers. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Whether the server has closed the connection or the connection has failed. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Received bytes that have not been parsed yet. */
  get received(): Buffer {
    return this.#received;
  }

  /** Resolves when the system has accepted the bytes or the connection is closed. */
  write(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = () => reject(new Error("the server does not read"));
      const timer = setTimeout(late, WAIT_TIMEOUT_MS);
      this.#socket.write(bytes, () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Half-closes the connection after pending writes, and continues to read. */
  endInput(): void {
    this.#socket.end();
  }

  /**
   * Reads one complete response. @returns null if the connection ended first.
   * @param method the request's method, or null if unknown.
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

  /** Reads an unfinished response until it contains a string. */
  async readThrough(text: string): Promise<RawResponse> {
    while (!this.#received.includes(text) && !this.#hasEnded) await this.#change(text);
    const isOver = true;
    return parseResponse(this.#received, "GET", isOver)!.response;
  }

  /** Resolves when at least `bytes` unparsed bytes have arrived or the connection has ended. */
  async receive(bytes: number): Promise<void> {
    while (this.#received.length < bytes && !this.#hasEnded) await this.#change("more bytes");
  }

  /** Resolves when the server has closed the connection. */
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
        () => reject(new Error(`no ${awaited}; received: ${this.#received.toString()}`)),
        WAIT_TIMEOUT_MS,
      );
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Opens a connection, sends bytes, reads the first response and disconnects. */
export async function exchange(
  socketPath: string,
  bytes: string | Uint8Array,
): Promise<RawResponse | null> {
  const connection = await RawConnection.open(socketPath, bytes);
  const response = await connection.readResponse();
  connection.destroy();
  return response;
}
