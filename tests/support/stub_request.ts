/** A request for a handler, without a server. */
import { Buffer } from "node:buffer";
import type { HttpRequest } from "../../src/http/message.ts";

export interface StubRequestOptions {
  method?: string;
  target?: string;
  /** Header values by lowercase name. `host` is added. */
  headers?: Record<string, string>;
  /** Null for a chunked body, which is the default. */
  bodyBytes?: number | null;
  /** The chunks in which the body arrives. */
  pieces?: Iterable<Uint8Array | string>;
}

export function stubRequest(options: StubRequestOptions = {}): HttpRequest {
  const { method = "GET", target = "/v1/events", pieces = [] } = options;
  const headers: Record<string, string> = { host: "localhost", ...options.headers };
  const iterator = pieces[Symbol.iterator]();
  return {
    method,
    target,
    isHttp11: true,
    client: () => "here",
    header: (name) => headers[name] ?? null,
    bodyBytes: options.bodyBytes ?? null,
    // deno-lint-ignore require-await -- errors thrown by `pieces` must reject
    async read() {
      const { done, value } = iterator.next();
      return done ? null : Buffer.from(value as Uint8Array);
    },
  };
}
