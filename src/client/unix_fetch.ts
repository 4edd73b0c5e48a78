/**
 * `fetch` over a Unix domain socket, in any runtime with `node:http`.
 *
 * As with `fetch`, the promise resolves as soon as the response head arrives, even if the request
 * body is still being sent. Response bodies stream with backpressure. A failed connection rejects
 * with a `TypeError` that has a `cause`, and an abort rejects with the signal's abort reason.
 * Redirects, cookies, caches, compression and retries are not supported.
 */
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { statSync } from "node:fs";
import { Agent, type IncomingMessage, request as httpRequest } from "node:http";
import { SOCKET_PATH_BYTES_MAX } from "../socket_path.ts";
import { WAITS } from "./deadline.ts";

/** Idle connections are closed after this time. */
const CLIENT_IDLE_TIMEOUT_MS = 30_000;

/** Maximum connections per client, without follows; further requests wait for a free one. */
export const CLIENT_SOCKETS_MAX: number = 64;

/** The signature of `fetch`. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** Statuses for which `Response` rejects a body. */
const NULL_BODY_STATUSES: ReadonlySet<number> = new Set([204, 205, 304]);

/** Base URL for resolving paths. The host is ignored. */
const BASE_URL = "http://localhost";

/**
 * Creates a `fetch` that sends requests to a Unix socket.
 *
 * Keeps at most `CLIENT_SOCKETS_MAX` connections open; further requests wait for a free one. Each
 * follow (`follow=true` in the query) has a connection of its own, since it holds it forever. Idle
 * connections do not keep the process alive. Scheme, host and port in a URL are ignored, so a path
 * suffices. A body is sent with a `content-length`; a stream is first read to its end.
 *
 * @param socketPath Path of the service's socket.
 * @throws {TypeError} if the path cannot be that of a socket: empty, too long or a URL.
 * @returns A `fetch`. It rejects with a `TypeError` if an argument is invalid, such as a malformed
 *   URL or a GET with a body. If the connection fails, even while the response body is being read,
 *   the `TypeError` has a `cause`. An abort rejects with the signal's abort reason.
 *
 * @example
 * ```ts
 * import { unixFetch } from "@ground/service";
 *
 * const fetch = unixFetch("demo/data/ground.sock");
 * const response = await fetch("/v1/events?limit=10");
 * const page = await response.json();
 * ```
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
    const body = request.body && await bytesOf(request.body, signal);
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
    // The response head, which may arrive before the body is sent.
    const responding = Promise.withResolvers<IncomingMessage>();
    // If sending fails, nothing awaits this promise, and its rejection must not go unhandled.
    responding.promise.catch(() => {});
    // Reject immediately, since destroy() may not stop a request that has not connected.
    const abort = () => {
      outgoing.destroy();
      responding.reject(signal?.reason);
    };
    const stopAborting = () => signal?.removeEventListener("abort", abort);
    signal?.addEventListener("abort", abort, { once: true });
    outgoing.once("response", (incoming) => {
      if (signal?.aborted) incoming.destroy();
      else responding.resolve(incoming);
    });
    // Keep this listener, so that no later error is uncaught. The body reports such errors.
    outgoing.on("error", responding.reject);
    try {
      outgoing.end(body);
      const incoming = await responding.promise;
      waitFor("the rest of the response");
      incoming.once("close", stopAborting);
      return await toResponse(incoming, request.method, (cause) => {
        return failure(socketPath, signal, cause);
      });
    } catch (cause) {
      stopAborting();
      throw failure(socketPath, signal, cause);
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

/** Reads a body to its end. An abort cancels it. */
function bytesOf(body: ReadableStream, signal?: AbortSignal | null): Promise<Uint8Array> {
  const read = body.pipeThrough(new TransformStream(), { ...signal && { signal } });
  return new Response(read).bytes();
}

async function toResponse(
  incoming: IncomingMessage,
  method: string,
  toFailure: (cause: unknown) => unknown,
): Promise<Response> {
  const status = incoming.statusCode ?? 0;
  const headers = new Headers();
  for (let at = 0; at + 1 < incoming.rawHeaders.length; at += 2) {
    headers.append(incoming.rawHeaders[at] ?? "", incoming.rawHeaders[at + 1] ?? "");
  }
  const hasBody = method !== "HEAD" && !NULL_BODY_STATUSES.has(status);
  // The connection is free only after the empty response has been read to its end.
  if (!hasBody) await once(incoming.resume(), "close");
  return new Response(hasBody ? responseBody(incoming, toFailure) : null, {
    status,
    statusText: incoming.statusMessage ?? "",
    headers,
  });
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
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new TypeError(`connection to ${socketPath} failed: ${reason}`, { cause });
}
