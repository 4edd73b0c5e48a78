/**
 * `fetch` over a Unix domain socket, in any runtime that has `node:http`.
 *
 * Kept as `fetch` keeps it: a response resolves as soon as its head is there, also while the
 * request body is still on its way; bodies stream in both directions at the pace of the slower
 * side; a lost or refused connection is a `TypeError` with the reason as its `cause`; an aborted
 * signal rejects with the signal's reason. Left out: redirects, cookies, caches and compression,
 * which the service does not use. Nothing is retried here: only the caller knows what may be sent
 * twice.
 */
import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import { Readable } from "node:stream";

/** A connection without use for this long is closed. */
const CLIENT_IDLE_TIMEOUT_MS = 30_000;

/** Connections one client holds at a time; further requests wait for a free one. */
export const CLIENT_SOCKETS_MAX: number = 64;

/** The part of `fetch` that {@linkcode unixFetch} gives: fits wherever a `fetch` is taken. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** Statuses that have no body by definition: `Response` refuses one for them. */
const NULL_BODY_STATUSES: ReadonlySet<number> = new Set([204, 205, 304]);

/** Completes a path to a URL; the connection goes to the socket whatever the URL says. */
const BASE_URL = "http://localhost";

/**
 * Makes a `fetch` whose requests go to the service on a Unix socket.
 *
 * Connections are kept open between requests, at most `CLIENT_SOCKETS_MAX` at a time; further
 * requests wait for a free one. Idle connections do not keep the process alive. Scheme, host and
 * port of a URL are ignored, and a path alone is enough. A body given as a stream is sent chunked,
 * any other with its length.
 *
 * @param socketPath Path of the service's socket.
 * @returns A `fetch`. It throws a `TypeError` for what `fetch` refuses (a malformed URL, a GET with
 *   a body), a `TypeError` with a `cause` when the connection fails, also in the middle of a
 *   response body, and the reason of the signal when that is aborted.
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
  const agent = new Agent({
    keepAlive: true,
    maxSockets: CLIENT_SOCKETS_MAX,
    maxFreeSockets: CLIENT_SOCKETS_MAX,
    timeout: CLIENT_IDLE_TIMEOUT_MS,
  });
  return async (input, init) => {
    const request = new Request(typeof input === "string" ? new URL(input, BASE_URL) : input, init);
    // Not `request.signal`: that one is only weakly tied to the caller's.
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    signal?.throwIfAborted();
    const body = await requestBody(request, input, init);
    // It may have been aborted while the body was collected.
    signal?.throwIfAborted();
    const { pathname, search } = new URL(request.url);
    const outgoing = httpRequest({
      socketPath,
      agent,
      method: request.method,
      path: pathname + search,
      headers: Object.fromEntries(request.headers),
    });
    // An aborted signal rejects at once, whatever the request does: one that is not connected yet
    // may not notice that it was destroyed, and bring a response nevertheless.
    const aborted = Promise.withResolvers<never>();
    const abort = () => {
      outgoing.destroy();
      aborted.reject(signal?.reason);
    };
    const stopAborting = () => signal?.removeEventListener("abort", abort);
    signal?.addEventListener("abort", abort, { once: true });
    // It is no longer awaited once the response is there.
    aborted.promise.catch(() => {});
    try {
      const incoming = await Promise.race([send(outgoing, body, signal), aborted.promise]);
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

type RequestBody = Uint8Array | ReadableStream<Uint8Array> | null;

/** A stream stays one; anything else is taken as bytes, so that its length can be declared. */
async function requestBody(
  request: Request,
  input: string | URL | Request,
  init: RequestInit | undefined,
): Promise<RequestBody> {
  if (request.body === null) return null;
  const given = init?.body ?? (input instanceof Request ? input.body : null);
  return given instanceof ReadableStream ? request.body : await request.bytes();
}

/** Resolves with the head of the response, which may come before the body is sent. */
function send(
  outgoing: ClientRequest,
  body: RequestBody,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.once("response", (incoming) => {
      if (signal?.aborted) incoming.destroy();
      else resolve(incoming);
    });
    // Stays for the request's whole life: once there is a response, that is what tells of a
    // failure.
    outgoing.on("error", reject);
    if (!(body instanceof ReadableStream)) {
      outgoing.end(body);
      return;
    }
    const source = Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
    source.once("error", (error) => outgoing.destroy(error));
    outgoing.once("close", () => source.destroy());
    source.pipe(outgoing);
  });
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
  // A response without a body is read to its end here, which frees its connection.
  if (!hasBody) await once(incoming.resume(), "close");
  return new Response(hasBody ? responseBody(incoming, toFailure) : null, {
    status,
    statusText: incoming.statusMessage ?? "",
    headers,
  });
}

/** Nothing is read from the socket before it is asked for; cancelling closes the connection. */
function responseBody(
  incoming: IncomingMessage,
  toFailure: (cause: unknown) => unknown,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  // An error before the first read has no listener yet; the first read meets it then.
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

/** What `fetch` throws for a connection that failed. */
function failure(socketPath: string, signal: AbortSignal | undefined, cause: unknown): unknown {
  if (signal?.aborted) return signal.reason;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new TypeError(`connection to ${socketPath} failed: ${reason}`, { cause });
}
