/** A request for the handler without a server. */
import { Buffer } from "node:buffer";
import type { HttpRequest } from "../../src/http/message.ts";

export interface StubRequestOptions {
  method?: string;
  target?: string;
  /** By lowercase name; `host` is added. */
  headers?: Record<string, string>;
  /** The body in the pieces it arrives in. */
  pieces?: Iterable<Uint8Array | string>;
}

export function stubRequest(options: StubRequestOptions = {}): HttpRequest {
  const { method = "GET", target = "/v1/events", pieces = [] } = options;
  const headers: Record<string, string> = { host: "localhost", ...options.headers };
  async function* body() {
    for (const piece of pieces) yield Buffer.from(piece as Uint8Array);
  }
  return {
    method,
    target,
    header: (name) => headers[name] ?? null,
    body,
    bytes: () => Promise.resolve(Buffer.concat([...pieces].map((p) => Buffer.from(p as string)))),
  };
}
