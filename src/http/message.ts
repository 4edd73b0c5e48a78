/**
 * The request and response that the handler sees: the least that both runtimes' servers can give
 * without building web `Request` and `Response` objects for every call.
 */

export interface HttpRequest {
  readonly method: string;
  /** Path and query as they came on the request line, nothing decoded. */
  readonly target: string;
  /** Value of a header by its lowercase name; repeated ones joined by ", "; null when absent. */
  header(name: string): string | null;
  /** The body in the pieces it arrives in. To be read once; a body that is not read is drained. */
  body(): AsyncIterable<Uint8Array>;
  /** The whole body at once; only for one whose declared length has been checked. */
  bytes(): Promise<Uint8Array>;
}

export interface HttpResponse {
  status: number;
  /** Names in lowercase. `content-length` is added for a body that is not streamed. */
  headers: Record<string, string>;
  /** Pieces are asked for one by one, as the client takes them; null for HEAD. */
  body: string | Uint8Array | AsyncIterable<Uint8Array> | null;
}

/** Answers one request. Never throws: what goes wrong is a response. */
export type HttpHandler = (request: HttpRequest) => Promise<HttpResponse>;

/** A server that accepts requests on a Unix socket. */
export interface HttpServer {
  /** Stops accepting, waits for requests under way, and removes the socket file. */
  close(): Promise<void>;
}
