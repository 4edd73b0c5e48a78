/**
 * `fetch` over a Unix domain socket, by means of `node:http`. Response bodies stream with
 * backpressure. Redirects, cookies, caches, compression and retries are not supported.
 */
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { statSync } from "node:fs";
import { Agent, type IncomingMessage, request as httpRequest } from "node:http";
import { addAbortSignal } from "node:stream";
import { SOCKET_PATH_BYTES_MAX } from "../socket_path.ts";
import { WAITS } from "./deadline.ts";

/** Idle connections are closed after this time. */
const CLIENT_IDLE_TIMEOUT_MS = 30_000;

/** Maximum connections per client, without follows; further requests wait for a free one. */
export const CLIENT_SOCKETS_MAX: number = 64;

/** The signature of `fetch`. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** Statuses for which `Response` rejects a body. */
const NULL_BODY_STATUSES = [204, 205, 304];

/** Base URL for resolving paths. The host is ignored. */
const BASE_URL = "http://localhost";

/**
 * Creates a `fetch` that sends requests to a Unix socket. Scheme, host and port in a URL are
 * ignored, so a path suffices. A body that is a stream is first read to its end.
 *
 * At most `CLIENT_SOCKETS_MAX` connections are open; further requests wait for a free one. Each
 * follow (`follow=true` in the query) has a connection of its own.
 *
 * @throws {TypeError} if the path cannot be that of a socket: empty, too long or a URL.
 * @returns A `fetch`. If the connection fails, even while the response body is being read, it
 *   rejects with a `TypeError` that has a `cause`, and after an abort with the abort reason.
 */
export function unixFetch(socketPath: string): Fetch {
  refuseImpossible(socketPath);
  const pool = new Agent({
    keepAlive: true,
    maxSockets: CLIENT_SOCKETS_MAX,
    maxFreeSockets: CLIENT_SOCKETS_MAX,
    timeout: CLIENT_IDLE_TIMEOUT_MS,
  });
  return async (input, init) => {
    const request = new Request(typeof input === "string" ? new URL(input, BASE_URL) : input, init);
    // `request.signal` is only weakly linked to the caller's signal.
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    signal?.throwIfAborted();
    // The caller's framing headers could contradict the body that is sent.
    for (const name of ["content-length", "transfer-encoding"]) request.headers.delete(name);
    const body = request.body && await request.bytes();
    signal?.throwIfAborted();
    const { pathname, search, searchParams } = new URL(request.url);
    const isFollow = searchParams.get("follow") === "true";
    const outgoing = httpRequest({
      socketPath,
      agent: isFollow ? new Agent() : pool,
      method: request.method,
      path: pathname + search,
      headers: Object.fromEntries(request.headers),
    });
    const waitFor = (what: string) => signal && WAITS.set(signal, what);
    waitFor(`a free connection (all ${CLIENT_SOCKETS_MAX} are in use)`);
    outgoing.once("socket", () => waitFor("the service to accept the request"));
    outgoing.once("finish", () => waitFor("a response"));
    const failed = (cause: unknown) => failure(socketPath, signal, cause);
    // Keep this listener, so that no later error is uncaught. The body reports such errors.
    outgoing.on("error", () => {});
    // destroy() may not stop a request that has not connected.
    outgoing.once("response", (incoming) => signal?.aborted && incoming.destroy());
    try {
      outgoing.end(body);
      const [incoming] = await once(outgoing, "response", signal && { signal });
      waitFor("the rest of the response");
      if (signal) addAbortSignal(signal, incoming);
      return await toResponse(incoming, request.method, failed);
    } catch (cause) {
      outgoing.destroy();
      throw failed(cause);
    }
  };
}

/** Rejects a path that no socket can have. An empty one would connect to TCP port 80. */
function refuseImpossible(path: unknown): void {
  const isUrl = /^[a-z][a-z0-9+.-]*:\/\/|^(unix|file|https?):/i.test(String(path));
  const sizeBytes = Buffer.byteLength(String(path));
  const isPath = typeof path === "string" && path !== "" && !path.includes("\0") && !isUrl;
  if (isPath && sizeBytes <= SOCKET_PATH_BYTES_MAX) return;
  const given = typeof path !== "string" ? typeof path : isUrl ? "a URL" : `${sizeBytes} bytes`;
  const expected = `the path of a Unix socket, 1 to ${SOCKET_PATH_BYTES_MAX} bytes without NUL`;
  throw new TypeError(`unixFetch() expects ${expected}, but got ${given}`);
}

async function toResponse(
  incoming: IncomingMessage,
  method: string,
  toFailure: (cause: unknown) => unknown,
): Promise<Response> {
  const status = incoming.statusCode ?? 0;
  const headers = new Headers(incoming.headers as Record<string, string>);
  const hasBody = method !== "HEAD" && !NULL_BODY_STATUSES.includes(status);
  // The connection is free once the empty response has been read to its end.
  if (!hasBody) await once(incoming.resume(), "close");
  const statusText = incoming.statusMessage ?? "";
  const body = hasBody ? responseBody(incoming, toFailure) : null;
  return new Response(body, { status, statusText, headers });
}

/** Returns a stream that reads from the socket on demand. Canceling it closes the connection. */
function responseBody(
  incoming: IncomingMessage,
  toFailure: (cause: unknown) => unknown,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  // The next read reports the error; without a listener, the error would be uncaught.
  incoming.on("error", () => {});
  const chunks = incoming[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      try {
        const next = await chunks.next();
        if (next.done) controller.close();
        else controller.enqueue(new Uint8Array(next.value));
      } catch (cause) {
        controller.error(toFailure(cause));
      }
    },
    cancel() {
      incoming.destroy();
    },
  }, { highWaterMark: 0 });
}

/** Returns the error for a failed connection. */
function failure(socketPath: string, signal: AbortSignal | undefined, cause: unknown): unknown {
  if (signal?.aborted) return signal.reason;
  // The system also refuses connections to a path that is not a socket.
  const isRefused = (cause as { code?: unknown } | null)?.code === "ECONNREFUSED";
  if (isRefused && statSync(socketPath, { throwIfNoEntry: false })?.isSocket() === false) {
    cause = Object.assign(new Error("the path is not a socket", { cause }), { code: "ENOTSOCK" });
  }
  const message = cause instanceof Error ? cause.message : String(cause);
  // `node:http` says `aborted` for a connection that the service closed.
  const reason = message === "aborted" ? "it was closed before the response ended" : message;
  return new TypeError(`connection to ${socketPath} failed: ${reason}`, { cause });
}
