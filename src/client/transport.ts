/** Sends requests with retries. A request either gets a 200 response or throws. */
import { parseJsonText } from "../event/json/strict_json.ts";
import { CLIENT_DOCUMENT_BYTES_MAX, CLIENT_LINE_BYTES_MAX } from "../limits.ts";
import { Deadline } from "./deadline.ts";
import { EventLogError, ProtocolError } from "./errors.ts";
import { bytesOf, requestError } from "./response_body.ts";
import {
  mayRepeat,
  pauseMs,
  type Retry,
  SYSTEM_TIMING,
  systemCodeOf,
  type Timing,
} from "./retry.ts";
import type { Fetch } from "./unix_fetch.ts";

/** Options for an `EventLogClient`. */
export interface EventLogClientOptions {
  /** Bearer token, if the service requires one. */
  token?: string | undefined;
  /** Attempts per request, including the first; default 20. Set 1 to disable retries. */
  attemptsMax?: number;
  /** Timeout for an append or a retirement, covering all attempts; default 60,000. */
  writeTimeoutMs?: number;
  /** Timeout for each page or listing, and each record up to `caught_up`; default 600,000. */
  readTimeoutMs?: number;
  /** How long a new client waits for a socket, in addition to `attemptsMax`; default 1,000. */
  socketWaitMs?: number;
  /** Called before the pause that precedes each retry, except in `follow()`: see `onReconnect`. */
  onRetry?: (retry: Retry) => void;
  /** Clock, timer and randomness, for tests. */
  timing?: Timing;
}

/** A request to the service. */
export interface ApiRequest {
  method: "GET" | "POST";
  path: string;
  /** Undefined values are omitted. */
  query?: Record<string, string | number | undefined>;
  /** JSON in UTF-8. */
  body?: Uint8Array<ArrayBuffer>;
}

/** Attempts per request. Including pauses, they outlast a restart that takes over a minute. */
export const CLIENT_ATTEMPTS_MAX: number = 20;

/** How long a new client retries if there is no socket at its path. The path may be wrong. */
const CLIENT_SOCKET_WAIT_MS = 1_000;

/** Timeout for an append or a retirement, covering all attempts and pauses. */
const CLIENT_WRITE_TIMEOUT_MS = 60_000;

/** Timeout for a read, which may scan a long log for the only event that matches its filter. */
const CLIENT_READ_TIMEOUT_MS = 600_000;

/** `fetch` requires a host; the service ignores it. */
const ORIGIN = "http://localhost";

const UTF8 = new TextDecoder("utf-8", { fatal: true });

export class Transport {
  readonly #fetch: Fetch;
  readonly #headers = new Headers();
  readonly timing: Timing;
  readonly readTimeoutMs: number;
  readonly #writeTimeoutMs: number;
  readonly #attemptsMax: number;
  readonly #socketWaitMs: number;
  readonly #onRetry: ((retry: Retry) => void) | undefined;
  #hasReached = false;

  /** @throws {TypeError} if `fetch` is not a function, or the token not a valid header value. */
  constructor(fetch: Fetch, options: EventLogClientOptions) {
    if (typeof fetch !== "function") {
      throw new TypeError(
        `EventLogClient needs a fetch function, such as unixFetch(path), but got ${typeof fetch}`,
      );
    }
    const { token, attemptsMax = CLIENT_ATTEMPTS_MAX } = options;
    this.#fetch = fetch;
    this.timing = options.timing ?? SYSTEM_TIMING;
    this.#attemptsMax = attemptsMax;
    this.readTimeoutMs = options.readTimeoutMs ?? CLIENT_READ_TIMEOUT_MS;
    this.#writeTimeoutMs = options.writeTimeoutMs ?? CLIENT_WRITE_TIMEOUT_MS;
    this.#socketWaitMs = options.socketWaitMs ?? (attemptsMax > 1 ? CLIENT_SOCKET_WAIT_MS : 0);
    this.#onRetry = options.onRetry;
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
   * connection or a 429: every request of this protocol is idempotent. The timeout of a write is
   * for all attempts. Each attempt of a read has its own, and is not retried after that.
   */
  async request(request: ApiRequest, signal?: AbortSignal): Promise<unknown> {
    const { timing } = this;
    const startedAtMs = timing.nowMs();
    const isWrite = request.method === "POST";
    const timeoutMs = isWrite ? this.#writeTimeoutMs : this.readTimeoutMs;
    const deadline = new Deadline(signal);
    try {
      for (let failures = 1;; failures++) {
        if (!isWrite || failures === 1) deadline.start(nameOf(request), timeoutMs);
        try {
          return await this.attempt(request, deadline.signal);
        } catch (error) {
          if (deadline.signal.aborted || !mayRepeat(error)) throw error;
          const durationMs = this.pauseAfter(error, failures, startedAtMs);
          if (durationMs === null) throw error;
          if (!isWrite) deadline.stop();
          else if (timing.nowMs() + durationMs - startedAtMs > timeoutMs) throw error;
          this.#onRetry?.({ reason: error, failures, pauseMs: durationMs });
          await timing.sleep(durationMs, deadline.signal);
        }
      }
    } finally {
      deadline.stop();
    }
  }

  /** Returns the pause before the next attempt; null if none follows. */
  pauseAfter(error: unknown, failures: number, startedAtMs: number): number | null {
    const durationMs = pauseMs(failures, error, this.timing.random());
    const waitedMs = this.timing.nowMs() + durationMs - startedAtMs;
    const code = this.#hasReached ? undefined : systemCodeOf(error);
    const isStarting = code === "ENOENT" || code === "ECONNREFUSED";
    if (isStarting && waitedMs <= this.#socketWaitMs) return durationMs;
    return failures < this.#attemptsMax && code !== "ENOENT" ? durationMs : null;
  }

  /** Sends a request once and reads the response as JSON. */
  async attempt(request: ApiRequest, signal: AbortSignal): Promise<unknown> {
    const response = await this.send(request, signal);
    const isPage = request.method === "GET" && request.path === "/v1/events";
    const limitBytes = isPage ? CLIENT_LINE_BYTES_MAX : CLIENT_DOCUMENT_BYTES_MAX;
    const body = await bytesOf(nameOf(request), response, limitBytes);
    return parsed(request, body);
  }

  /** Sends a request once and returns the response once its head has arrived. */
  async send(request: ApiRequest, signal: AbortSignal): Promise<Response> {
    const { method, body } = request;
    const headers = new Headers(this.#headers);
    if (body !== undefined) headers.set("content-type", "application/json");
    const init = { method, headers, signal, ...(body && { body }) };
    const response = await this.#fetch(ORIGIN + targetOf(request), init).catch((cause) => {
      throw requestError(nameOf(request), cause);
    });
    this.#hasReached = true;
    if (response.status === 200) return response;
    const text = new TextDecoder()
      .decode(await bytesOf(nameOf(request), response, CLIENT_DOCUMENT_BYTES_MAX));
    const askedMs = retryAfterMs(response.headers.get("retry-after"));
    throw new EventLogError(response.status, parseOrText(text), askedMs);
  }
}

/** Parses a response or, of a follow, a line of it. */
export function parsed(request: ApiRequest, body: Uint8Array): unknown {
  try {
    return parseJsonText(UTF8.decode(body));
  } catch (cause) {
    throw new ProtocolError(`response to ${nameOf(request)} is not JSON in UTF-8`, { cause });
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

/**
 * Rejects unknown options: a misspelled filter would match everything.
 * @throws {TypeError} if `given` is not an object, or has an option that is not in `names`.
 */
export function refuseUnknown(call: string, given: object, names: string): void {
  if (typeof given !== "object" || given === null) {
    const type = given === null ? null : typeof given;
    throw new TypeError(`${call} expects an object, but got ${type}`);
  }
  const known = names.split(" ");
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const meant = spelledAs(unknown, known) ?? `one of ${known.join(", ")}`;
  throw new TypeError(`${call} has no option ${unknown}; use ${meant}`);
}

/** Returns the known name that differs from `name` only in case and underscores. */
export function spelledAs(name: string, known: readonly string[]): string | undefined {
  const plain = (each: string) => each.replaceAll("_", "").toLowerCase();
  return known.find((each) => plain(each) === plain(name));
}
