/**
 * HTTP/1.1 on a Unix socket, by `node:net`, so that every byte of it is the same in each runtime:
 * which requests are refused, what headers a response has, when a connection ends.
 */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { clearTimeout, setTimeout } from "node:timers";
import { HEADERS_TIMEOUT_MS, SHUTDOWN_GRACE_MS } from "../limits.ts";
import { AcceptWatch } from "./accept_watch.ts";
import { Connection, type ConnectionHost } from "./connection.ts";
import type { HttpHandler, HttpResponse, HttpServer, MalformedRequestError } from "./message.ts";
import { closeSocketFile, socketFileAt } from "./socket_file.ts";
import { StallWatch } from "./stall_watch.ts";

/**
 * A server without a new connection for this long probes whether it still accepts any; if it does
 * not, it reopens its socket after another interval.
 */
const ACCEPT_PROBE_INTERVAL_MS = 5_000;

export interface ListenOptions {
  /** Where the socket file is made. Nothing may be there. */
  path: string;
  handler: HttpHandler;
  /** Makes the response to what is no HTTP request. */
  refusal: (error: MalformedRequestError) => HttpResponse;
  /** Receives sentences for the operator. */
  report: (line: string) => void;
  /** How long `close()` waits for clients; `SHUTDOWN_GRACE_MS` if absent. */
  shutdownGraceMs?: number;
  /** How long a head may take to arrive; `HEADERS_TIMEOUT_MS` if absent. */
  headersTimeoutMs?: number;
  /** How often to look whether connections are accepted; `ACCEPT_PROBE_INTERVAL_MS` if absent. */
  acceptProbeMs?: number;
}

/**
 * Starts a server. It accepts connections once this resolves.
 * @throws {Error} the socket cannot be bound, with the system's `code`, such as `EADDRINUSE`.
 */
export async function listen(options: ListenOptions): Promise<HttpServer> {
  const { path, handler, refusal, report } = options;
  const connections = new Set<Connection>();
  const headWatch = new StallWatch(options.headersTimeoutMs ?? HEADERS_TIMEOUT_MS);
  const host = { handler, refusal, report, headWatch, isClosing: false };
  const open = () =>
    openServer(options, (socket) => {
      watch.accepted();
      const connection = new Connection(socket, host);
      connections.add(connection);
      void connection.over().then(() => connections.delete(connection));
    });
  const reopen = async () => {
    report("the server stopped accepting connections; reopening the socket");
    await closeSocketFile(socketFile, () => Promise.resolve(void server.close()));
    server = await open();
    if (host.isClosing) server.close();
    else socketFile = socketFileAt(path);
  };
  const intervalMs = options.acceptProbeMs ?? ACCEPT_PROBE_INTERVAL_MS;
  const watch = new AcceptWatch({ path, intervalMs, reopen });
  let server: Server;
  try {
    server = await open();
  } catch (error) {
    watch.stop();
    throw error;
  }
  let socketFile = socketFileAt(path);
  let closed: Promise<void> | undefined;
  return {
    close() {
      watch.stop();
      closed ??= closeSocketFile(socketFile, () => closeServer(server, connections, host, options));
      return closed;
    },
  };
}

/** Resolves once connections are accepted. */
async function openServer(
  { path, report }: ListenOptions,
  onConnection: (socket: Socket) => void,
): Promise<Server> {
  // A client may end its side and still read.
  const server = createServer({ allowHalfOpen: true }, onConnection);
  server.listen(path);
  await once(server, "listening");
  // Out of descriptors, for example. Open connections are not affected.
  server.on("error", ({ message }) => report(`a connection could not be accepted: ${message}`));
  return server;
}

async function closeServer(
  server: Server,
  connections: ReadonlySet<Connection>,
  host: ConnectionHost & { isClosing: boolean },
  { report, shutdownGraceMs = SHUTDOWN_GRACE_MS }: ListenOptions,
): Promise<void> {
  server.close();
  host.isClosing = true;
  for (const connection of connections) connection.shutDown();
  const graceEnd = Promise.withResolvers<void>();
  const grace = setTimeout(() => {
    report(`connections cut off that did not end within ${shutdownGraceMs} ms`);
    for (const connection of connections) connection.destroy();
    graceEnd.resolve();
  }, shutdownGraceMs);
  // Not the server's own event: Deno 2.7 counts connections wrongly and never emits it.
  const closed = [...connections].map((connection) => connection.closed());
  const over = [...connections].map((connection) => connection.over());
  // What is read for a client that has gone ends before the log does, if it ends soon.
  await Promise.race([Promise.all(over), graceEnd.promise]);
  await Promise.all(closed);
  clearTimeout(grace);
}
