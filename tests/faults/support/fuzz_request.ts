/** A request whose head and body can be malformed separately, and its encoding. */
import { Buffer } from "node:buffer";
import type { SeededRandom } from "../../../tools/support/random.ts";

export interface FuzzRequest {
  /** The request line and the headers except those that frame the body, each with its CRLF. */
  head: string;
  /** The body, sent with a `Content-Length`. Null for a request without a body. */
  body: Buffer | null;
}

export function get(target: string, method = "GET"): FuzzRequest {
  return { head: `${method} ${target} HTTP/1.1\r\nHost: fuzz\r\n`, body: null };
}

/** @param body a value to send as JSON. */
export function post(target: string, body: unknown): FuzzRequest {
  const head = `${get(target, "POST").head}Content-Type: application/json\r\n`;
  return { head, body: Buffer.from(JSON.stringify(body)) };
}

/** The bytes of a request, framed according to RFC 9112. */
export function toBytes({ head, body }: FuzzRequest): Buffer {
  if (body === null) return Buffer.from(`${head}\r\n`);
  return Buffer.concat([Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n`), body]);
}

/** The same request with a chunked body made up of these chunks. */
export function toChunkedBytes({ head }: FuzzRequest, chunks: readonly Buffer[]): Buffer {
  const pieces: Buffer[] = [Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n`)];
  for (const chunk of chunks) {
    pieces.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n"));
  }
  return Buffer.concat([...pieces, Buffer.from("0\r\n\r\n")]);
}

/** Tokens with a meaning in HTTP. */
export const HTTP_TOKENS: readonly Buffer[] = [
  ...["\r\n", "\n", "\r", "\r\n\r\n", "\n\n", "\0", " ", "\t", ":", ",", ";", "=", "&", "?", "%"],
  ...["0\r\n\r\n", "HTTP/1.1", "GET / HTTP/1.1\r\n\r\n", "{", "}", "[", "]", '"', "\\", "\\u0000"],
  ...["\xff", "\xc0\x80", "\xed\xa0\x80", "\xef\xbb\xbf", "-", "1e999", "null"],
  "99999999999999999",
].map((token) => Buffer.from(token, "latin1"));

/** Between 1 and `bytesMax` random bytes. */
export function randomBytes(random: SeededRandom, bytesMax: number): Buffer {
  const bytes = Buffer.alloc(1 + random.below(bytesMax));
  random.bytes(bytes);
  return bytes;
}

/** Splits bytes into a few non-empty chunks. */
export function cutIntoPieces(random: SeededRandom, bytes: Buffer, piecesMax: number): Buffer[] {
  const cuts = Array.from({ length: random.below(piecesMax) }, () => random.below(bytes.length));
  const ends = [...new Set([...cuts, bytes.length])].sort((a, b) => a - b);
  return ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end)).filter((p) => p.length > 0);
}
