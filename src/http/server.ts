/**
 * An HTTP/1.1 server on a Unix socket, built on `node:net` so that error responses, headers and
 * connection handling are the same in every runtime.
 */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { dirname } from "node:path";
import { clearTimeout, setTimeout } from "node:timers";
import {
  BODY_STALL_TIMEOUT_MS,
  CONNECTIONS_MAX,
  HEADERS_TIMEOUT_MS,
  IDLE_TIMEOUT_MS,
  SHUTDOWN_GRACE_MS,
  WRITE_STALL_TIMEOUT_MS,
} from "../limits.ts";
import { AcceptWatch } from "./accept_watch.ts";
import { Connection, type ConnectionHost } from "./connection.ts";
import { ConnectionLimit } from "./connection_limit.ts";
import { bindSocket, closeSocketFile, socketFileAt } from "./socket_file.ts";
import { StallWatch } from "./stall_watch.ts";
import { Turns } from "../turns.ts";

/** Idle time before a server probes its socket, and delay between a failed probe and reopening. */
const ACCEPT_PROBE_INTERVAL_MS = 5_000;

export interface ListenOptions extends Pick<ConnectionHost, "handler" | "refusal" | "report"> {
  /** Path of the socket, which must not exist. */
  path: string;
  shutdownGraceMs?: number;
  headersTimeoutMs?: number;
  /** Timeout for a request body that makes no progress. */
  bodyStallTimeoutMs?: number;
  /** Timeout for a client that accepts nothing of a response. */
  writeStallTimeoutMs?: number;
  idleTimeoutMs?: number;
  /** Maximum open connections. Beyond, a connection between requests is closed for a new one. */
  connectionsMax?: number;
  acceptProbeMs?: number;
  /** Called before the socket is reopened, which waits and is retried if this rejects. */
  mayReopen?: () => Promise<void>;
}

/**
 * Starts a server. Resolves once it accepts connections. `close()` stops accepting, waits for
 * pending requests and removes the socket file.
 * @throws {Error} if the socket cannot be bound, with a system `code` like `EADDRINUSE`.
 */
export async function listen(options: ListenOptions): Promise<{ close(): Promise<void> }> {
  const { path, handler, refusal, report } = options;
  const connections = new Set<Connection>();
  const host = {
    handler,
    refusal,
    report,
    headWatch: new StallWatch(options.headersTimeoutMs ?? HEADERS_TIMEOUT_MS),
    bodyWatch: new StallWatch(options.bodyStallTimeoutMs ?? BODY_STALL_TIMEOUT_MS),
    newWatch: new StallWatch(options.idleTimeoutMs ?? IDLE_TIMEOUT_MS),
    idleWatch: new StallWatch(options.idleTimeoutMs ?? IDLE_TIMEOUT_MS),
    writeWatch: new StallWatch(options.writeStallTimeoutMs ?? WRITE_STALL_TIMEOUT_MS),
    turns: new Turns(),
    isClosing: false,
  };
  const closeOne = () => host.newWatch.expireFirst() || host.idleWatch.expireFirst();
  const connectionsMax = options.connectionsMax ?? CONNECTIONS_MAX;
  const limit = new ConnectionLimit(connectionsMax, dirname(path), closeOne);
  const open = async (): Promise<Server> => {
    // A client may half-close the connection and still read.
    const opened = createServer({ allowHalfOpen: true }, (socket) => {
      watch.accepted();
      if (!limit.admit()) {
        socket.destroy();
        return;
      }
      socket.once("close", () => limit.closed());
      const connection = new Connection(socket, host);
      connections.add(connection);
      void connection.over().then(() => connections.delete(connection));
    });
    bindSocket(opened, path);
    await once(opened, "listening");
    // Errors such as EMFILE do not affect open connections.
    opened.on("error", ({ message }) => report(`cannot accept a connection: ${message}`));
    return opened;
  };
  let isReopening = false;
  const reopen = async () => {
    await options.mayReopen?.();
    const reason = existsSync(path) ? "does not accept connections" : "was removed";
    // Retries are not reported.
    if (!isReopening) report(`${path}: ${reason}; reopening the socket`);
    isReopening = true;
    const closed = () => Promise.resolve(void server.close());
    // If the old file cannot be removed, opening the new one fails and is retried.
    await closeSocketFile(socketFile, closed, () => {});
    server = await open();
    isReopening = false;
    if (host.isClosing) server.close();
    else socketFile = socketFileAt(path);
  };
  let server = await open();
  let socketFile = socketFileAt(path);
  const watch = new AcceptWatch(path, options.acceptProbeMs ?? ACCEPT_PROBE_INTERVAL_MS, reopen);
  const shutDown = () => closeServer(server, connections, host, options);
  let closed: Promise<void> | undefined;
  return {
    close() {
      watch.stop();
      return closed ??= closeSocketFile(socketFile, shutDown, report);
    },
  };
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
    report(`closing connections that are still open after ${shutdownGraceMs} ms`);
    for (const connection of connections) connection.destroy();
    graceEnd.resolve();
  }, shutdownGraceMs);
  // Requests from disconnected clients also get time to finish before the log closes.
  const over = Promise.all([...connections].map((connection) => connection.over()));
  await Promise.race([over, graceEnd.promise]);
  clearTimeout(grace);
}
