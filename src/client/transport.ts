/** Sends requests with retries. A request either gets a 200 response or throws. */
import { parseJsonText } from "../event/json/strict_json.ts";
import { ConnectionError, EventLogError, ProtocolError } from "./errors.ts";
import { mayRepeat, pauseMs, type Retry } from "./retry.ts";
import type { Timing } from "./timing.ts";
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

/** How long a new client retries if there is no socket at its path. The path may be wrong. */
const CLIENT_FIRST_CONNECT_MS = 1_000;

/** `fetch` requires a host; the service ignores it. */
const ORIGIN = "http://localhost";

/** Sends requests to one service. */
export class Transport {
  readonly #fetch: Fetch;
  readonly #headers = new Headers();
  readonly timing: Timing;
  /** Attempts per request, including the first. */
  readonly attemptsMax: number;
  readonly #onRetry: ((retry: Retry) => void) | undefined;
  #hasReached = false;

  /**
   * @param token Bearer token; undefined for none.
   * @throws {TypeError} if the token is not a valid header value.
   */
  constructor(
    fetch: Fetch,
    token: string | undefined,
    timing: Timing,
    attemptsMax: number,
    onRetry?: (retry: Retry) => void,
  ) {
    this.#fetch = fetch;
    this.timing = timing;
    this.attemptsMax = attemptsMax;
    this.#onRetry = onRetry;
    if (token === undefined) return;
    try {
      this.#headers.set("authorization", `Bearer ${token}`);
    } catch {
      // The original error quotes the token.
      throw new TypeError("the token contains characters that are not allowed in a header");
    }
  }

  /**
   * Sends a request and reads the response as JSON. Retries with exponential backoff after a lost
   * connection or a 429: every request of this protocol is idempotent.
   * @param signal Aborts attempts and pauses.
   * @param timeoutMs The last attempt starts within this time.
   * @throws {EventLogError} if the status is not 200.
   * @throws {ConnectionError} if the last attempt got no response, or an incomplete one.
   * @throws {ProtocolError} if the response is not JSON.
   */
  async request(
    request: ApiRequest,
    signal: AbortSignal | undefined,
    timeoutMs: number = Infinity,
  ): Promise<unknown> {
    const { timing } = this;
    const startedAtMs = timing.nowMs();
    for (let failures = 1;; failures++) {
      try {
        const response = await this.send(request, signal);
        return parseResponse(request, await textOf(request, response));
      } catch (error) {
        if (failures >= this.attemptsMax || !mayRepeat(error)) throw error;
        const durationMs = pauseMs(failures, error, timing.random());
        const windowMs = Math.min(timeoutMs, this.retryWindowMs(error));
        if (timing.nowMs() + durationMs > startedAtMs + windowMs) throw error;
        this.#onRetry?.({ reason: error, failures, pauseMs: durationMs });
        await timing.sleep(durationMs, signal);
      }
    }
  }

  /** Returns how long a request is retried after this error. */
  retryWindowMs(error: unknown): number {
    return !this.#hasReached && isSocketMissing(error) ? CLIENT_FIRST_CONNECT_MS : Infinity;
  }

  /**
   * Sends a request once and returns the response as soon as its head has arrived.
   * @throws {EventLogError} if the status is not 200.
   * @throws {ConnectionError} if there was no response.
   */
  async send(request: ApiRequest, signal: AbortSignal | undefined): Promise<Response> {
    const { method, body } = request;
    const headers = new Headers(this.#headers);
    if (body !== undefined) headers.set("content-type", "application/json");
    const init = { method, headers, ...(body && { body }), ...(signal && { signal }) };
    const response = await orConnectionError(
      nameOf(request),
      () => this.#fetch(ORIGIN + targetOf(request), init),
    );
    this.#hasReached = true;
    if (response.status === 200) return response;
    const text = await textOf(request, response);
    throw new EventLogError({
      status: response.status,
      body: parseOrText(text),
      retryAfterMs: retryAfterMs(response.headers.get("retry-after")),
    });
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
 * Converts a TypeError to a ConnectionError. `fetch` throws a TypeError if the connection fails
 * before the body is complete.
 * @param name Name of the request, for the message.
 */
export async function orConnectionError<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new ConnectionError(`${name} got no response: ${cause.message}`, { cause });
  }
}

/** Whether the socket is missing. `unixFetch()` wraps the system's error in a TypeError. */
function isSocketMissing(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && /^(ENOENT|ENOTSOCK)$/.test(String(cause.code))) return true;
  }
  return false;
}

function textOf(request: ApiRequest, response: Response): Promise<string> {
  return orConnectionError(nameOf(request), () => response.text());
}

function parseResponse(request: ApiRequest, text: string): unknown {
  try {
    return parseJsonText(text);
  } catch (cause) {
    throw new ProtocolError(`response to ${nameOf(request)} is not JSON`, { cause });
  }
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
