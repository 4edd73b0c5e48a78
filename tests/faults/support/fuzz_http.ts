/**
 * Corrupts the request line, headers or framing of HTTP/1.1 requests (RFC 9112). Malformed requests
 * whose response is known are in `tests/http/support/smuggling_shapes.ts`.
 */
import { Buffer } from "node:buffer";
import type { SeededRandom } from "../../../tools/support/random.ts";
import { changeTokens } from "./almost_json.ts";
import {
  cutIntoPieces,
  type FuzzRequest,
  HTTP_TOKENS,
  randomBytes,
  toBytes,
  toChunkedBytes,
} from "./fuzz_request.ts";

const METHODS = ["get", "PUT", "DELETE", "OPTIONS", "CONNECT", "HEAD", "PRI", "", "G E T", "POST"];
const TARGETS = [
  ...["", "*", "/", "//v1/events", "/v1/events/", "/V1/EVENTS", "/v1/../v1/events", "/v1/events\0"],
  ...["/v1/%65vents", "/v1/events#x", "/v1/events?&", "/v1/events?limit=1&limit=2", "/v1/catalog"],
  ...["/v1/events?limit=-1", "/v1/events?limit=1e3", "/v1/events?limit=%31", "/v1/events?x=%zz"],
  ...["/v1/events?follow=1", "/v1/events?follow=true&follow=true", "/v1/events?after="],
  ...["/v1/events?after=00000000-0000-7000-8000-000000000000", "/v1/events?source=a b"],
  ...["/v1/streams?after=a/b", "/v1/streams?through=ffffffff-ffff-7fff-bfff-ffffffffffff"],
  ...["/v1/events?source=%ff", "/v1/events?record_key=%00", "http://x/v1/events?limit=1", "x:1"],
];
const VERSIONS = ["HTTP/1.0", "HTTP/1.2", "HTTP/0.9", "HTTP/2.0", "http/1.1", "HTTP/1.1\t", ""];
/** Header lines, some of which contradict the framing of the body. */
const LINES = [
  ...["Host: other", " folded: x", "NoColon", "X: \0", "X: \xff\xfe", "X: a\rb", "X: a\nb"],
  ...["Connection: close", "Connection: keep-alive", "Connection: upgrade", "Upgrade: websocket"],
  ...["Expect: 100-continue", "Expect: 200-ok", "Content-Type: text/plain", "Content-Encoding: br"],
  ...["Content-Type: application/json; charset=utf-8", "Content-Type: application/json;charset=x"],
  ...["Content-Length: 0", "Content-Length: 5", "Content-Length: -1", "Content-Length: 33554433"],
  ...["Content-Length: 9007199254740993", "Transfer-Encoding: gzip, chunked"],
  ...["Transfer-Encoding: chunked", "Transfer-Encoding: chunked, chunked", "Trailer: x"],
];
/** Header lines around the size limit of a head, and beyond it. */
const MANY_LINES = [
  Array(200).fill("X: y"),
  Array(20_000).fill("X: y"),
  [`X: ${"x".repeat(16_000)}`],
  [`Host: ${"x".repeat(66_000)}`],
  [`${"x".repeat(200_000)}: x`],
];
const PREFACES = ["\r\n", "\r\n\r\n\r\n", "\n", " ", "\0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"];
const TOKENS = /\r\n|[ :,;=&?]|[^\r\n :,;=&?]+|[\r\n]/g;

/** The bytes of a request with one fault, or occasionally none. */
export function mutateHttp(random: SeededRandom, request: FuzzRequest): Buffer {
  if (random.chance(0.25)) return random.pick(WHOLE_CHANGES)(random, request);
  const bytes = toBytes(request);
  const bodyStart = bytes.length - (request.body?.length ?? 0);
  const head = random.pick(HEAD_CHANGES)(random, bytes.toString("latin1", 0, bodyStart));
  return Buffer.concat([latin1(head), bytes.subarray(bodyStart)]);
}

const HEAD_CHANGES: readonly ((random: SeededRandom, head: string) => string)[] = [
  (random, head) => put(head, /^\S+/, random.pick(METHODS)),
  (random, head) => put(head, / \S+/, ` ${random.pick(TARGETS)}`),
  (random, head) => put(head, /HTTP\/1\.1/, random.pick(VERSIONS)),
  (random, head) => insert(random, head, [random.pick(LINES)]),
  (random, head) =>
    head.replace(/(?<=Content-Length: )\d+/, (text) => {
      const length = Number(text);
      return `${random.pick([length - 1, length + 1, length * 2, length >> 1])}`;
    }),
  (random, head) => {
    const other = () => random.pick(HTTP_TOKENS).toString("latin1");
    return changeTokens(random, head, other, TOKENS);
  },
  (random, head) => insert(random, head, random.pick(MANY_LINES)),
];

const WHOLE_CHANGES: readonly ((random: SeededRandom, request: FuzzRequest) => Buffer)[] = [
  inChunks,
  // A fault in the framing of the first chunk.
  (random, request) => {
    const bytes = inChunks(random, request);
    const at = bytes.indexOf("\r\n\r\n") + random.below(12);
    if (at < bytes.length) bytes[at] = random.below(256);
    return bytes;
  },
  (random, request) => Buffer.concat([latin1(random.pick(PREFACES)), toBytes(request)]),
  // The request continues or is followed by something else.
  (random, request) => {
    const bytes = toBytes(request);
    const more = random.pick([bytes, latin1(random.pick(PREFACES)), randomBytes(random, 200)]);
    return Buffer.concat([bytes, ...Array<Buffer>(random.pick([1, 1, 2, 20])).fill(more)]);
  },
];

function latin1(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

/** Replaces the first match with a literal string, in which `$` has no special meaning. */
function put(text: string, pattern: RegExp, by: string): string {
  return text.replace(pattern, () => by);
}

/** Inserts header lines before or after all others. */
function insert(random: SeededRandom, head: string, lines: readonly string[]): string {
  const text = lines.map((line) => `\r\n${line}`).join("");
  return put(head, random.chance(0.5) ? /(?=\r\n)/ : /(?=\r\n\r\n$)/, text);
}

function inChunks(random: SeededRandom, request: FuzzRequest): Buffer {
  const body = request.body ?? randomBytes(random, 50);
  return toChunkedBytes(request, cutIntoPieces(random, body, random.pick([1, 5, 200])));
}
