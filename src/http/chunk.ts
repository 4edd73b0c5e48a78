/**
 * Frames pieces of a body as chunks (RFC 9112 section 7.1). The last chunk is cached: a thousand
 * followers get the same piece in a row, and a copy costs more than a write.
 */
import { Buffer } from "node:buffer";

const CRLF = "\r\n";

/** Ends a chunked body. */
export const LAST_CHUNK = "0\r\n\r\n";
/** Ends the content of a chunk. */
export const CHUNK_END = CRLF;

let latestPiece: Uint8Array | null = null;
let latestChunk: Buffer | null = null;

/** Returns the size line of a chunk. */
export function chunkStart(sizeBytes: number): string {
  return sizeBytes.toString(16) + CRLF;
}

/** Returns a chunk with a copy of `piece`, which must not change afterwards. */
export function chunkOf(piece: Uint8Array): Buffer {
  if (latestChunk === null || piece !== latestPiece) {
    latestChunk = framed(chunkStart(piece.length), piece, CHUNK_END);
    latestPiece = piece;
  }
  return latestChunk;
}

/** Concatenates ASCII texts and a copy of `bytes`. */
export function framed(before: string, bytes: Uint8Array, after = ""): Buffer {
  const start = before.length;
  const end = start + bytes.length;
  const whole = Buffer.allocUnsafe(end + after.length);
  whole.write(before, 0, "latin1");
  whole.set(bytes, start);
  if (after !== "") whole.write(after, end, "latin1");
  return whole;
}
