/**
 * HTTP/1.1 on a Unix socket. What both servers do alike: header names and values, `Connection` and
 * `Keep-Alive` only where HTTP wants them, no compression, a response that comes before the
 * request's body, and a bounded shutdown.
 */
import type { HttpHandler, HttpServer } from "../http/message.ts";

export interface ListenOptions {
  /** Where the socket file is made. Nothing may be there. */
  path: string;
  handler: HttpHandler;
  /** Receives sentences for the operator. */
  report: (line: string) => void;
  /** How long `close()` waits for clients; `SHUTDOWN_GRACE_MS` if absent. */
  shutdownGraceMs?: number;
}

/**
 * Starts a server. It accepts connections once this resolves.
 * @throws {Error} the socket cannot be bound, with the system's `code`, such as `EADDRINUSE`.
 */
export async function listen(options: ListenOptions): Promise<HttpServer> {
  const runtime = "Deno" in globalThis
    ? await import("./listen_deno.ts")
    : await import("./listen_node.ts");
  return await runtime.listen(options);
}
