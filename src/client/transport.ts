/**
 * One request, one outcome: a response with status 200, or one of the errors of errors.ts, or the
 * reason of the caller's signal. Nothing is repeated here.
 */
import { parseJsonText } from "../event/json/strict_json.ts";
import { ConnectionError, EventLogError, ProtocolError } from "./errors.ts";
import type { Fetch } from "./unix_fetch.ts";

/** A request to the service. */
export interface ApiRequest {
  method: "GET" | "POST";
  path: string;
  /** Undefined values are left out. */
  query?: Record<string, string | number | undefined>;
  /** JSON in UTF-8. */
  body?: Uint8Array<ArrayBuffer>;
}

/**
 * Sends a request and returns the response once its head is there.
 * @throws {EventLogError} the status is not 200.
 * @throws {ConnectionError} there was no answer.
 */
export type Send = (request: ApiRequest, signal: AbortSignal | undefined) => Promise<Response>;

/** A `fetch` wants a host; the service ignores it. */
const ORIGIN = "http://localhost";

/**
 * Makes the way to one service.
 * @param token Bearer token; undefined for none.
 * @throws {TypeError} when the token cannot stand in a header.
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
    // Not the error itself: it quotes the token.
    throw new TypeError("the token has characters that cannot stand in a header");
  }
  return headers;
}

/**
 * Sends a request and reads the response as JSON.
 * @throws {EventLogError} the status is not 200.
 * @throws {ConnectionError} there was no answer, or not all of it.
 * @throws {ProtocolError} the answer is not JSON.
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
    throw new ProtocolError(`answer to ${nameOf(request)} is not JSON`, { cause });
  }
}

/** Method and path for messages; the query may hold what is not for logs. */
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
 * Does what uses the connection. `fetch` tells by a TypeError that it failed, for head and body
 * alike.
 * @param name What was asked for, for the message.
 * @throws {ConnectionError} in place of a TypeError.
 */
export async function orConnectionError<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new ConnectionError(`${name} got no answer: ${cause.message}`, { cause });
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

/**
 * Whole seconds, as the service sends it. The other form of RFC 9110 section 10.2.3, a date, is not
 * used.
 */
function retryAfterMs(value: string | null): number | null {
  return value !== null && /^[0-9]{1,9}$/.test(value) ? Number(value) * 1000 : null;
}
