/**
 * The request and response that a handler sees. They know nothing of what is served, and hold no
 * more than a response needs.
 */

export interface HttpRequest {
  readonly method: string;
  /** The request target (RFC 9112 section 3.2) as it came, nothing decoded. */
  readonly target: string;
  /** Value of a header by its lowercase name; repeated ones joined by ", "; null when absent. */
  header(name: string): string | null;
  /**
   * The body in the pieces it arrives in, none of them asked for before it is wanted. To be read
   * once; what is left unread when the response is there is dropped.
   * @throws {ConnectionLostError} while iterating.
   * @throws {MalformedRequestError} while iterating.
   */
  body(): AsyncIterable<Uint8Array>;
  /**
   * The whole body at once; only for one whose declared length has been checked.
   * @throws {ConnectionLostError}
   * @throws {MalformedRequestError}
   */
  bytes(): Promise<Uint8Array>;
}

/** The client, or a server that shuts down, ended the connection before the body was complete. */
export class ConnectionLostError extends Error {
  override name = "ConnectionLostError";
}

/** What came is not HTTP/1.1 as this server speaks it; the message says what of it. */
export class MalformedRequestError extends Error {
  override name = "MalformedRequestError";
}

export interface HttpResponse {
  readonly status: number;
  /**
   * Names in lowercase. `content-length` is added for a body that is not streamed; the answer to a
   * HEAD carries it itself where it is known.
   */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Pieces are asked for one by one, as the client takes them, and `return()` is called when it
   * goes away; one that throws breaks the connection. Bytes are not changed once they are given.
   * Null for HEAD.
   */
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array> | null;
  /**
   * The body lasts as long as its client: a client that ends its side of the connection has gone.
   */
  readonly isEndless?: boolean;
}

/** Answers one request. Never throws: what goes wrong is a response. */
export type HttpHandler = (request: HttpRequest) => Promise<HttpResponse>;

/** A server that accepts requests on a Unix socket. */
export interface HttpServer {
  /**
   * Stops accepting, waits for pending requests, also of clients that have gone, and removes the
   * socket file.
   */
  close(): Promise<void>;
}
