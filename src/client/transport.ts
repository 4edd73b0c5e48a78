/** Sends single requests: each returns a response with status 200 or throws. No retries. */
import { parseJsonText } from "../event/json/strict_json.ts";
import { ConnectionError, EventLogError, ProtocolError } from "./errors.ts";
import type { Fetch } from "./unix_fetch.ts";

/** A request to the service. */
export interface ApiRequest {
  method: "GET" | "POST";
  path: string;
  /** Undefined values are omitted. */
  query?: Record<string, string | number | undefined>;
  /** JSON in UTF-8. */
  body?: Uint8Array<ArrayBuffer>;
}

/**
 * Sends a request and returns the response when its head has arrived.
 * @throws {EventLogError} the status is not 200.
 * @throws {ConnectionError} there was no response.
 */
export type Send = (request: ApiRequest, signal: AbortSignal | undefined) => Promise<Response>;

/** `fetch` requires a host; the service ignores it. */
const ORIGIN = "http://localhost";

/**
 * Creates the `Send` of one service.
 * @param token Bearer token; undefined for none.
 * @throws {TypeError} the token is not a valid header value.
 */
export function createSend(fetch: Fetch, token: string | undefined): Send {
  const headers = authorizationHeaders(token);
  const postHeaders = new Headers(headers);
  postHeaders.set("content-type", "application/json");
  return async (request, signal) => {
    const init: RequestInit = request.body === undefined
      ? { method: request.method, headers }
      : { method: request.method, headers: postHeaders, body: request.body };
    const response = await orConnectionError(
      nameOf(request),
      () => fetch(ORIGIN + targetOf(request), signal === undefined ? init : { ...init, signal }),
    );
    if (response.status === 200) return response;
    throw toEventLogError(
      response,
      await orConnectionError(nameOf(request), () => response.text()),
    );
  };
}

function authorizationHeaders(token: string | undefined): Headers {
  const headers = new Headers();
  if (token === undefined) return headers;
  try {
    headers.set("authorization", `Bearer ${token}`);
  } catch {
    // The original error quotes the token.
    throw new TypeError("the token has characters that are not allowed in a header");
  }
  return headers;
}

/**
 * Sends a request and reads the response as JSON.
 * @throws {EventLogError} the status is not 200.
 * @throws {ConnectionError} there was no response, or it is incomplete.
 * @throws {ProtocolError} the response is not JSON.
 */
export async function sendForJson(
  send: Send,
  request: ApiRequest,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const response = await send(request, signal);
  const text = await orConnectionError(nameOf(request), () => response.text());
  try {
    return parseJsonText(text);
  } catch (cause) {
    throw new ProtocolError(`response to ${nameOf(request)} is not JSON`, { cause });
  }
}

/** Returns method and path for messages; the query may be confidential. */
export function nameOf({ method, path }: ApiRequest): string {
  return `${method} ${path}`;
}

function targetOf({ path, query = {} }: ApiRequest): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}

/**
 * Maps a TypeError, by which `fetch` reports a failed connection for head and body, to a
 * ConnectionError.
 * @param name The request, for the message.
 */
export async function orConnectionError<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new ConnectionError(`${name} got no response: ${cause.message}`, { cause });
  }
}

function toEventLogError({ status, headers }: Response, text: string): EventLogError {
  return new EventLogError({
    status,
    body: parseOrText(text),
    retryAfterMs: retryAfterMs(headers.get("retry-after")),
  });
}

function parseOrText(text: string): unknown {
  try {
    return parseJsonText(text);
  } catch {
    return text;
  }
}

/** Parses seconds; the service never sends the date form of RFC 9110 section 10.2.3. */
function retryAfterMs(value: string | null): number | null {
  return value !== null && /^[0-9]{1,9}$/.test(value) ? Number(value) * 1000 : null;
}
