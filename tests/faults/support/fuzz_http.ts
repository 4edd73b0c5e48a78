/** Corrupts the request line, headers or framing of HTTP/1.1 requests (RFC 9112). */
import { Buffer } from "node:buffer";
import type { SeededRandom } from "../../../tools/support/random.ts";
import {
  cutIntoPieces,
  type FuzzRequest,
  randomBytes,
  toBytes,
  toChunkedBytes,
} from "./fuzz_request.ts";

const METHODS = [
  ...["get", "Get", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "HEAD", "BREW", "PRI"],
  ...["", "G E T", "GET\t", "POST", "GET", "M-SEARCH", "\xc3\xa9", "x".repeat(5000)],
];
const TARGETS = [
  ...["", "*", "/", "//v1/events", "/v1//events", "/v1/events/", "/V1/EVENTS", "/v1/../v1/events"],
  ...["/v1/%65vents", "/v1/events#x", "/v1/events?", "/v1/events?&", "/v1/events?limit=1&limit=2"],
  ...["/v1/events?limit=-1", "/v1/events?limit=1e3", "/v1/events?limit=%31", "/v1/events?x=%zz"],
  ...["/v1/events?follow=1", "/v1/events?follow=true&follow=true", "/v1/events?after="],
  ...["/v1/query", "/v1/events?after=00000000-0000-7000-8000-000000000000"],
  ...["/v1/streams?after=a/b", "/v1/", "/v1/streams?through=ffffffff-ffff-7fff-bfff-ffffffffffff"],
  ...["/v1/catalog", "/v1/streams?v=1", "/v1/events?source=a b", "/v1/events?source=\xff"],
  ...["/v1/events?source=%ff", "v1/events", "http://x/v1/events?limit=1", "http://x"],
  ...["https://a@b:1/v1/streams", "file:///v1/events", "/v1/events\0", "/v1/events?record_key=%00"],
  ...["/v1/events HTTP/1.1", "x:1", "/\\v1\\events"],
];
const VERSIONS = [
  ...["HTTP/1.0", "HTTP/1.0", "HTTP/1.2", "HTTP/0.9", "HTTP/2", "HTTP/2.0", "http/1.1"],
  ...["HTTP/1.1 ", "HTTP/1.1\t", "HTTP/11", "HTTP/1.1.1", "HTPT/1.1", "", "HTTP/", "HTTP/1"],
  "HTTP/1.1\r",
];
const LENGTHS = [
  ...["-1", "+5", "0x10", "1e2", "5.0", "", " ", "5, 5", "5,6", "1 1", "NaN", "00", "0", "1", "2"],
  ...["999", "33554432", "33554433", "4294967296", "9007199254740993", "9".repeat(30), "\xb2"],
];
const CODINGS = [
  ...["chunked", "Chunked", "chunked ", "chunked, chunked", "gzip, chunked", "chunked, gzip"],
  ...["identity", "x", "", "chunked;q=1", "\tchunked", "chunked\x0b"],
];
/** Header lines, including line ends. */
const LINES = [
  ...["Host: other", "Host:", "Host : x", " folded: x", "\tfolded", "NoColon", ":empty", "X: \0"],
  ...["X: \x7f", "X: \xff\xfe", "X\xff: y", "X: a\rb", "X: a\nb", "X Y: z", "(X): y", "X:\x01"],
  ...["Connection: close", "Connection: keep-alive", "Connection: x, close", "Upgrade: websocket"],
  ...["Connection: upgrade", "Connection: Upgrade, HTTP2-Settings", "Expect: 100-continue"],
  ...["Expect: 200-ok", "Content-Type: text/plain", "Content-Type:", "Content-Encoding: gzip"],
  ...["Content-Type: application/json; charset=utf-8", "Content-Type: application/json;charset=x"],
  ...["Content-Encoding:", "Authorization: Bearer x", "Accept-Encoding: gzip", "Range: bytes=0-"],
  ...["Trailer: x", "TE: trailers", "Cookie: a=b", "Keep-Alive: timeout=1", "Date: yesterday"],
];
const CHUNKS = [
  ...["0\r\n\r\n", "1\r\n{\r\n0\r\n\r\n", "zz\r\n{}\r\n0\r\n\r\n", "-1\r\n"],
  ...["0x2\r\n{}\r\n0\r\n\r\n", "2\r\n{}0\r\n\r\n", "2\n{}\n0\n\n", "1\r\n{}\r\n0\r\n\r\n"],
  ...["2 \r\n{}\r\n0\r\n\r\n", "\r\n", "2;a=b\r\n{}\r\n0\r\nX: y\r\n\r\n"],
  ...["2\r\n{}\r\n0\r\nbad trailer\r\n\r\n", "ffffffffffffffff\r\n", "2\r\n{}\r\n0\r\n"],
  ...["3\r\n{}\r\n", "+2\r\n{}\r\n0\r\n\r\n", "2\r\n{}\r\n00000\r\n\r\n"],
  ...["000000000000000002\r\n{}\r\n0\r\n\r\n", "2;" + "x".repeat(70_000) + "\r\n{}\r\n0\r\n\r\n"],
];
const PREFACES = [
  ...["\r\n", "\r\n\r\n\r\n", "\n", " ", "\0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
];

/** The bytes of a request with one fault, or occasionally none. */
export function mutateHttp(random: SeededRandom, request: FuzzRequest): Buffer {
  if (random.below(20) < 5) return random.pick(WHOLE_CHANGES)(random, request);
  const bytes = toBytes(request);
  const bodyStart = bytes.length - (request.body?.length ?? 0);
  const head = random.pick(HEAD_CHANGES)(random, bytes.toString("latin1", 0, bodyStart));
  return Buffer.concat([latin1(head), bytes.subarray(bodyStart)]);
}

const LENGTH_LINE = /\r\nContent-Length: .*(?=\r\n)/;

const HEAD_CHANGES: readonly ((random: SeededRandom, head: string) => string)[] = [
  (random, head) => put(head, /^\S+/, random.pick(METHODS)),
  (random, head) => put(head, / \S+/, ` ${random.pick(TARGETS)}`),
  (random, head) => {
    const length = random.pick([1000, 8000, 60_000, 66_000]);
    return put(head, / HTTP/, random.pick(["?x=", "&x=", "/", "%"]) + "a".repeat(length) + " HTTP");
  },
  (random, head) => put(head, /HTTP\/1\.1/, random.pick(VERSIONS)),
  (random, head) => put(head, LENGTH_LINE, `\r\nContent-Length: ${random.pick(LENGTHS)}`),
  (random, head) => insert(random, head, [`Content-Length: ${random.pick(LENGTHS)}`]),
  (random, head) =>
    head.replace(/(?<=Content-Length: )\d+/, (text) => {
      const length = Number(text);
      return `${random.pick([length - 1, length + 1, length * 2, length >> 1])}`;
    }),
  (random, head) => {
    const framed = random.chance(0.5) ? head : put(head, LENGTH_LINE, "");
    return insert(random, framed, [`Transfer-Encoding: ${random.pick(CODINGS)}`]);
  },
  ...Array(2).fill((random: SeededRandom, head: string) =>
    insert(random, head, Array.from({ length: 1 + random.below(3) }, () => random.pick(LINES)))
  ),
  (random, head) => {
    const lines = head.trimEnd().split("\r\n").slice(1);
    return insert(random, head, Array(random.pick([1, 1, 2, 100])).fill(random.pick(lines)));
  },
  (random, head) => {
    const lines = head.split("\r\n");
    return lines.toSpliced(1 + random.below(lines.length - 3), 1).join("\r\n");
  },
  (random, head) => {
    const huge = "x".repeat(random.pick([1000, 8000, 16_000, 60_000, 66_000, 200_000]));
    return insert(random, head, [random.pick([`X: ${huge}`, `${huge}: x`, `Host: ${huge}`])]);
  },
  (random, head) => {
    const count = random.pick([90, 200, 3000, 20_000]);
    return insert(random, head, Array.from({ length: count }, (_, n) => `X-${n}: `));
  },
  (random, head) =>
    put(head, /: /, `:${random.pick(["\r\n ", "\r\n\t", "\r\n\r\n ", "\n ", "\r\n  \t "])}`),
  (random, head) => {
    const end = random.pick(["\n", "\r", "\r\r\n", "\n\r", "\r\n\r"]);
    return random.chance(0.5) ? put(head, /\r\n/, end) : head.replaceAll("\r\n", end);
  },
];

const WHOLE_CHANGES: readonly ((random: SeededRandom, request: FuzzRequest) => Buffer)[] = [
  goodChunks,
  badChunks,
  badChunks,
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

function goodChunks(random: SeededRandom, request: FuzzRequest): Buffer {
  const body = request.body ?? randomBytes(random, 50);
  return toChunkedBytes(request, cutIntoPieces(random, body, random.pick([1, 5, 200])));
}

/** Malformed chunks: arbitrary bytes, or valid chunks with one fault. */
function badChunks(random: SeededRandom, request: FuzzRequest): Buffer {
  if (random.chance(0.5)) {
    const headers: FuzzRequest["headers"] = [...request.headers, ["Transfer-Encoding", "chunked"]];
    const head = toBytes({ ...request, headers, body: null });
    return Buffer.concat([head, latin1(random.pick(CHUNKS))]);
  }
  const bytes = goodChunks(random, request);
  const at = bytes.indexOf("\r\n\r\n") + random.below(12);
  if (at < bytes.length) bytes[at] = random.below(256);
  return bytes;
}
