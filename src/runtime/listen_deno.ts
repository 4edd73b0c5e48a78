/**
 * The server on Deno, by `Deno.serve`. It closes a connection itself only when the client asked for
 * it, when a body was left unread, or at shutdown; it has no call to cut one off.
 */
import type { HttpResponse, HttpServer } from "../http/message.ts";
import { SHUTDOWN_GRACE_MS } from "../limits.ts";
import { DenoAcceptor } from "./deno_acceptor.ts";
import { DenoRequest } from "./deno_request.ts";
import { BROKEN_STREAM, type OpenStreams, toResponse } from "./deno_response.ts";
import { drain } from "./drain.ts";
import type { ListenOptions } from "./listen.ts";
import { closeSocketFile } from "./socket_file.ts";

/** Requests that have no response yet, each with what waits for it. */
type UnderWay = Map<DenoRequest, (() => void) | null>;

// deno-lint-ignore require-await -- a socket that cannot be bound rejects
export async function listen(options: ListenOptions): Promise<HttpServer> {
  const { path, handler, report, shutdownGraceMs = SHUTDOWN_GRACE_MS } = options;
  const openStreams: OpenStreams = new Set();
  const underWay: UnderWay = new Map();
  let closed: Promise<void> | undefined;
  const onError = (error: unknown) => {
    if (error !== BROKEN_STREAM) report(`response broken off: ${nameOf(error)}`);
    return new Response(null, { status: 500 });
  };
  const answer = async (webRequest: Request) => {
    const request = new DenoRequest(webRequest);
    underWay.set(request, null);
    const response = await handler(request);
    underWay.get(request)?.();
    underWay.delete(request);
    if (request.hasUnreadBody) void drain(request);
    return toResponse(request, closed ? lastOf(response) : response, openStreams);
  };
  const acceptor = new DenoAcceptor(
    path,
    (onRequest) =>
      Deno.serve({ path, onListen: () => {}, onError }, (webRequest) => {
        onRequest();
        return answer(webRequest);
      }),
    report,
  );
  return {
    close() {
      closed ??= closeSocketFile(acceptor.socketFile, async () => {
        if (await closeServer(acceptor, underWay, openStreams, shutdownGraceMs)) return;
        report(`connections cut off that did not end within ${shutdownGraceMs} ms`);
      });
      return closed;
    },
  };
}

/** The response as the last one of its connection. */
function lastOf(response: HttpResponse): HttpResponse {
  return { ...response, headers: { ...response.headers, connection: "close" } };
}

/**
 * Ends all connections after the responses under way. A shutdown cuts bodies that are still
 * arriving, so requests get their response first.
 * @returns false when that took longer than the grace time.
 */
async function closeServer(
  acceptor: DenoAcceptor,
  underWay: UnderWay,
  openStreams: OpenStreams,
  graceMs: number,
): Promise<boolean> {
  const { promise: graceOver, resolve: endGrace } = Promise.withResolvers<void>();
  const timer = setTimeout(endGrace, graceMs);
  await Promise.race([answered(underWay), graceOver]);
  let isClosed = false;
  const closed = acceptor.shutdown().then(() => {
    isClosed = true;
  });
  await Promise.race([closed, graceOver]);
  clearTimeout(timer);
  for (const breakOff of openStreams) breakOff();
  return isClosed;
}

/** Resolves when each request that is under way now has its response. */
async function answered(underWay: UnderWay): Promise<void> {
  await Promise.all(
    [...underWay.keys()].map((request) =>
      new Promise<void>((resolve) => underWay.set(request, resolve))
    ),
  );
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}
