/** Sends a response by `node:http`. */
import { Buffer } from "node:buffer";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { HttpResponse } from "../http/message.ts";
import { drain } from "./drain.ts";
import type { NodeRequest } from "./node_request.ts";

/** A longer piece is not copied. */
const OWN_CHUNK_BYTES_MAX = 16 * 1024;
const CRLF = "\r\n";

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
  let isFirst = true;
  try {
    for (;;) {
      const { done, value } = await iterator.next();
      if (done || outgoing.destroyed) break;
      const full = isFirst ? writePiece(outgoing, value) : writeChunk(outgoing, value);
      isFirst = false;
      if (full !== null) await writable(full);
    }
    outgoing.end();
  } catch {
    // The handler has told why. Not `destroy()`: what was written still goes out.
    outgoing.socket?.destroySoon();
  }
  outgoing.off("close", end);
}

/** What has no more room after a write; null when it has. */
type Full = ServerResponse | Socket | null;

function writePiece(outgoing: ServerResponse, piece: Uint8Array): Full {
  return outgoing.write(piece) ? null : outgoing;
}

/**
 * Writes a small piece, not the first, as a chunk (RFC 9112 section 7.1) to the socket itself: one
 * buffer at once, where `outgoing.write()` takes four and two ticks, for each record and follower.
 */
function writeChunk(outgoing: ServerResponse, piece: Uint8Array): Full {
  const { socket } = outgoing;
  const isPlain = socket === null || !outgoing.chunkedEncoding;
  if (isPlain || piece.length > OWN_CHUNK_BYTES_MAX) return writePiece(outgoing, piece);
  const size = piece.length.toString(16) + CRLF;
  const chunk = Buffer.allocUnsafe(size.length + piece.length + CRLF.length);
  chunk.write(size, 0, "latin1");
  chunk.set(piece, size.length);
  chunk.write(CRLF, size.length + piece.length, "latin1");
  return socket.write(chunk) ? null : socket;
}

/** Resolves when there is room to write, or nobody left to write to. */
function writable(full: ServerResponse | Socket): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      full.off("drain", settle);
      full.off("close", settle);
      resolve();
    };
    full.on("drain", settle);
    full.on("close", settle);
  });
}
