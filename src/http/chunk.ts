/**
 * Pieces of a body framed as chunks (RFC 9112 section 7.1). The chunk that was made last is kept: a
 * thousand followers in a row are sent the same piece, and to copy it for each costs more than to
 * write it does.
 */
import { Buffer } from "node:buffer";

const CRLF = "\r\n";

/** Ends a chunked body. */
export const LAST_CHUNK = "0\r\n\r\n";
/** Ends the content of a chunk. */
export const CHUNK_END = CRLF;

let latestPiece: Uint8Array | null = null;
let latestChunk: Buffer | null = null;

/** What comes before the content of a chunk of so many bytes; of none is what ends the body. */
export function chunkStart(sizeBytes: number): string {
  return sizeBytes.toString(16) + CRLF;
}

/** A chunk with a copy of `piece`, which is never changed after: it may be given again. */
export function chunkOf(piece: Uint8Array): Buffer {
  if (latestChunk === null || piece !== latestPiece) {
    latestChunk = framed(chunkStart(piece.length), piece, CHUNK_END);
    latestPiece = piece;
  }
  return latestChunk;
}

/** ASCII texts around a copy of `bytes`. */
export function framed(before: string, bytes: Uint8Array, after = ""): Buffer {
  const start = before.length;
  const end = start + bytes.length;
  const whole = Buffer.allocUnsafe(end + after.length);
  whole.write(before, 0, "latin1");
  whole.set(bytes, start);
  if (after !== "") whole.write(after, end, "latin1");
  return whole;
}
