/** Sends a response by `node:http`. */
import { Buffer } from "node:buffer";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { HttpResponse } from "../http/message.ts";
import { drain } from "./drain.ts";
import type { NodeRequest } from "./node_request.ts";

/**
 * Sends the response and ends it. A body that is still coming is drained before the end, since that
 * is where `node:http` closes a connection that is not to be kept.
 */
export async function sendResponse(
  request: NodeRequest,
  { status, headers, body }: HttpResponse,
  outgoing: ServerResponse,
): Promise<void> {
  // HTTP/1.1 keeps connections by default; the header `Connection: keep-alive` would only be noise.
  if (outgoing.shouldKeepAlive && outgoing.req.httpVersionMinor === 1) {
    outgoing.removeHeader("connection");
  }
  if (body !== null && typeof body !== "string" && !(body instanceof Uint8Array)) {
    outgoing.writeHead(status, headers);
    return await writePieces(body, outgoing);
  }
  outgoing.writeHead(status, withLength(headers, body));
  const unread = request.unreadBody;
  if (unread === null) {
    outgoing.end(body);
    return;
  }
  if (body !== null) outgoing.write(body);
  await drain(unread);
  outgoing.end();
}

function withLength(
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array | null,
): OutgoingHttpHeaders {
  return body === null ? headers : { ...headers, "content-length": Buffer.byteLength(body) };
}

/**
 * Asks for the next piece only when the client has taken what was written. When it goes away the
 * pieces are ended at once, also while one is waited for. A piece that fails breaks the connection.
 */
async function writePieces(
  pieces: AsyncIterable<Uint8Array>,
  outgoing: ServerResponse,
): Promise<void> {
  const iterator = pieces[Symbol.asyncIterator]();
  const end = () => void iterator.return?.();
  if (outgoing.destroyed) return end();
  outgoing.once("close", end);
  try {
    for (;;) {
      const { done, value } = await iterator.next();
      if (done || outgoing.destroyed) break;
      if (!outgoing.write(value)) await writable(outgoing);
    }
    outgoing.end();
  } catch {
    // The handler has told why. Not `destroy()`: what was written still goes out.
    outgoing.socket?.destroySoon();
  }
  outgoing.off("close", end);
}

/** Resolves when there is room to write, or nobody left to write to. */
function writable(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      outgoing.off("drain", settle);
      outgoing.off("close", settle);
      resolve();
    };
    outgoing.on("drain", settle);
    outgoing.on("close", settle);
  });
}
