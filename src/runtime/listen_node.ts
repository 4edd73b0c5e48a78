/** The server on Node, by `node:http`. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { HttpHandler, HttpServer } from "../http/message.ts";
import { HEADER_BYTES_MAX, HEADERS_TIMEOUT_MS, SHUTDOWN_GRACE_MS } from "../limits.ts";
import type { ListenOptions } from "./listen.ts";
import { NodeConnections } from "./node_connections.ts";
import { NodeRequest } from "./node_request.ts";
import { sendResponse } from "./node_response.ts";
import { closeSocketFile, socketFileAt } from "./socket_file.ts";

const NONE = 0;

const BAD_REQUEST = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

export async function listen(options: ListenOptions): Promise<HttpServer> {
  const server = createServer({
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_TIMEOUT_MS,
    // How long a body may take is the handler's business, and an idle client on this machine's own
    // socket costs a descriptor.
    requestTimeout: NONE,
    keepAliveTimeout: NONE,
    joinDuplicateHeaders: true,
    // The handler's business too.
    requireHostHeader: false,
  });
  // Bounded by their bytes; beyond a count they would be dropped without a word.
  server.maxHeadersCount = NONE;
  const connections = new NodeConnections();
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    answerRequest(incoming, outgoing, options.handler, connections).catch((error) => {
      options.report(`response broken off: ${error instanceof Error ? error.name : typeof error}`);
      outgoing.destroy();
    });
  };
  server.on("connection", (socket) => connections.opened(socket));
  server.on("request", answer);
  server.on("checkExpectation", answer);
  server.on("connect", (_incoming, socket) => refuse(socket));
  server.on("clientError", (_error, socket) => refuse(socket));
  server.listen(options.path);
  await once(server, "listening");
  const socketFile = socketFileAt(options.path);
  let closed: Promise<void> | undefined;
  return {
    close() {
      closed ??= closeSocketFile(socketFile, () => closeServer(server, connections, options));
      return closed;
    },
  };
}

async function answerRequest(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  handler: HttpHandler,
  connections: NodeConnections,
): Promise<void> {
  const { socket } = incoming;
  connections.requestCame(socket);
  if (outgoing.socket === null) {
    await turnOf(incoming, outgoing);
    if (socket.destroyed) return;
  }
  const request = new NodeRequest(incoming);
  const response = await handler(request);
  if (connections.isClosing) outgoing.shouldKeepAlive = false;
  await sendResponse(request, response, outgoing);
  connections.responseEnded(socket, outgoing);
}

/**
 * Resolves when all before it on the connection is answered, or the connection is gone. What is
 * pipelined behind a mutation must not be done beside it (RFC 9112 section 9.3.2).
 */
function turnOf(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    outgoing.once("socket", () => resolve());
    incoming.once("close", () => resolve());
  });
}

/** Answers what is not HTTP/1.1 as we speak it, and drops the rest, so that its end is seen. */
function refuse(socket: Duplex): void {
  // The client may be gone by now, and after a CONNECT nobody else listens.
  socket.on("error", () => {});
  if (socket.writable) socket.end(BAD_REQUEST);
  else socket.destroy();
  socket.resume();
}

async function closeServer(
  server: Server,
  connections: NodeConnections,
  { report, shutdownGraceMs = SHUTDOWN_GRACE_MS }: ListenOptions,
): Promise<void> {
  const closed = once(server, "close");
  server.close();
  connections.close();
  const grace = setTimeout(() => {
    report(`connections cut off that did not end within ${shutdownGraceMs} ms`);
    server.closeAllConnections();
  }, shutdownGraceMs);
  await closed;
  clearTimeout(grace);
}
