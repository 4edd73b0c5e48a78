/** Plain requests to a Unix socket with `node:http`, each on its own connection. */
import { Buffer } from "node:buffer";
import { type IncomingHttpHeaders, request as httpRequest } from "node:http";

export interface RequestOptions {
  /** Default: GET, or POST with a body. */
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  /** Bytes and strings are sent unchanged, anything else as JSON. */
  body?: unknown;
}

export interface HttpReply {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** The body as a string. */
  text(): string;
  // deno-lint-ignore no-explicit-any -- tests assert on values of any shape
  json(): any;
}

/** Sends one request and reads the whole response. */
export function request(socketPath: string, options: RequestOptions = {}): Promise<HttpReply> {
  const body = toBytes(options.body);
  const { method = body === undefined ? "GET" : "POST", path = "/v1/events" } = options;
  const headers = {
    ...(body === undefined ? {} : { "content-length": String(body.length) }),
    ...options.headers,
  };
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest({ socketPath, agent: false, method, path, headers });
    outgoing.on("error", reject);
    outgoing.on("response", (incoming) => {
      const pieces: Buffer[] = [];
      incoming.on("data", (piece: Buffer) => pieces.push(piece));
      incoming.on("error", reject);
      incoming.on("end", () => {
        const whole = Buffer.concat(pieces);
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          body: whole,
          text: () => whole.toString(),
          json: () => JSON.parse(whole.toString()),
        });
      });
    });
    outgoing.end(body);
  });
}

function toBytes(body: unknown): Uint8Array | undefined {
  if (body === undefined || body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}
