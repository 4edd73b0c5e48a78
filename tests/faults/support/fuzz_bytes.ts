/** Bytes of no format, and bytes in pieces. */
import { Buffer } from "node:buffer";
import type { SeededRandom } from "../../../tools/support/random.ts";

/** What a parser of requests gives a meaning to. */
export const HTTP_TOKENS: readonly Buffer[] = [
  ...["\r\n", "\n", "\r", "\r\n\r\n", "\n\n", "\0", " ", "\t", ":", ",", ";", "=", "&", "?", "%"],
  ...["0\r\n\r\n", "HTTP/1.1", "GET / HTTP/1.1\r\n\r\n", "{", "}", "[", "]", '"', "\\", "\\u0000"],
  ...[
    "\xff",
    "\xc0\x80",
    "\xed\xa0\x80",
    "\xef\xbb\xbf",
    "-",
    "1e999",
    "null",
    "99999999999999999",
  ],
].map((token) => Buffer.from(token, "latin1"));

/** Bytes of no format. */
export function randomBytes(random: SeededRandom, bytesMax: number): Buffer {
  const bytes = Buffer.alloc(1 + random.below(bytesMax));
  random.bytes(bytes);
  return bytes;
}

/** Cuts bytes into a few pieces, of which none is empty. */
export function cutIntoPieces(random: SeededRandom, bytes: Buffer, piecesMax: number): Buffer[] {
  const cuts = Array.from({ length: random.below(piecesMax) }, () => random.below(bytes.length));
  const ends = [...new Set([...cuts, bytes.length])].sort((a, b) => a - b);
  return ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end)).filter((p) => p.length > 0);
}
