/** The requests and responses for a handler. */

export interface HttpRequest {
  readonly method: string;
  /** The raw request target (RFC 9112 section 3.2). */
  readonly target: string;
  /** Returns a header by lowercase name, with repeated values joined by ", "; null if absent. */
  header(name: string): string | null;
  /** Declared length of the body; null if it is chunked. */
  readonly bodyBytes: number | null;
  /**
   * Returns the next piece of the body, synchronously if it has arrived; null at the end. If the
   * body has not arrived in full when the response is written, the connection closes.
   * @throws {MalformedRequestError | StallError}
   */
  read(): Uint8Array | null | Promise<Uint8Array | null>;
  /**
   * Whether the client waits for the response. "unknown" if the client has half-closed the
   * connection or sends ahead: only a write can tell whether it is there.
   */
  client(): "here" | "unknown" | "gone";
  /** Whether the client supports chunked responses and persistent connections; not in HTTP/1.0. */
  readonly isHttp11: boolean;
}

/** The request is not valid HTTP/1.1, or ended early; the message says why. */
export class MalformedRequestError extends Error {
  override name = "MalformedRequestError";
}

/** The body of a request did not arrive in time; the message says why. */
export class StallError extends Error {
  override name = "StallError";
}

export interface HttpResponse {
  readonly status: number;
  /** Lowercase names. The server adds `content-length` for a body in memory, but not for HEAD. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Null for HEAD. A stream is pulled as the client reads, and `return()` is called if the client
   * disconnects; an error closes the connection. Bytes must not change while being written.
   */
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array> | null;
  /** Whether the response lasts until the client half-closes the connection. */
  readonly isEndless?: boolean;
  /**
   * Called if the client accepts nothing for the stall timeout. The connection is then destroyed
   * after another timeout, otherwise after the first.
   */
  readonly onStall?: () => void;
  /** Called once when the response has been written, or its connection has closed. */
  readonly onEnd?: () => void;
}

/** Handles one request. Never throws: errors are responses. */
export type HttpHandler = (request: HttpRequest) => Promise<HttpResponse>;
