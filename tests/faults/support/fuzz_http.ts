/** Spoils what HTTP/1.1 (RFC 9112) says about a request: its line, its headers, its framing. */
import { Buffer } from "node:buffer";
import type { SeededRandom } from "../../../tools/support/random.ts";
import { cutIntoPieces, randomBytes } from "./fuzz_bytes.ts";
import { type FuzzRequest, toBytes, toChunkedBytes } from "./fuzz_request.ts";

const METHODS = [
  ...["get", "Get", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "HEAD", "BREW", "PRI"],
  ...["", "G E T", "GET\t", "POST", "GET", "M-SEARCH", "\xc3\xa9", "x".repeat(5000)],
];
const TARGETS = [
  ...["", "*", "/", "//v1/events", "/v1//events", "/v1/events/", "/V1/EVENTS", "/v1/../v1/events"],
  ...["/v1/%65vents", "/v1/events#x", "/v1/events?", "/v1/events?&", "/v1/events?limit=1&limit=2"],
  ...["/v1/events?limit=-1", "/v1/events?limit=1e3", "/v1/events?limit=%31", "/v1/events?x=%zz"],
  ...[
    "/v1/events?follow=1",
    "/v1/events?follow=true&follow=true",
    "/v1/events?after=",
    "/v1/query",
  ],
  ...["/v1/events?after=00000000-0000-7000-8000-000000000000", "/v1/streams?after=a/b", "/v1/"],
  ...["/v1/streams?through=ffffffff-ffff-7fff-bfff-ffffffffffff", "/v1/catalog", "/v1/streams?v=1"],
  ...["/v1/events?source=a b", "/v1/events?source=\xff", "/v1/events?source=%ff", "v1/events"],
  ...["http://x/v1/events?limit=1", "http://x", "https://a@b:1/v1/streams", "file:///v1/events"],
  ...["/v1/events\0", "/v1/events?record_key=%00", "/v1/events HTTP/1.1", "x:1", "/\\v1\\events"],
];
const VERSIONS = [
  ...[
    "HTTP/1.0",
    "HTTP/1.0",
    "HTTP/1.2",
    "HTTP/0.9",
    "HTTP/2",
    "HTTP/2.0",
    "http/1.1",
    "HTTP/1.1 ",
  ],
  ...["HTTP/1.1\t", "HTTP/11", "HTTP/1.1.1", "HTPT/1.1", "", "HTTP/", "HTTP/1", "HTTP/1.1\r"],
];
const LENGTHS = [
  ...["-1", "+5", "0x10", "1e2", "5.0", "", " ", "5, 5", "5,6", "1 1", "NaN", "00", "0", "1", "2"],
  ...["999", "33554432", "33554433", "4294967296", "9007199254740993", "9".repeat(30), "\xb2"],
];
const CODINGS = [
  ...["chunked", "Chunked", "chunked ", "chunked, chunked", "gzip, chunked", "chunked, gzip"],
  ...["identity", "x", "", "chunked;q=1", "\tchunked", "chunked\x0b"],
];
/** Header lines, whole. */
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
  ...[
    "0\r\n\r\n",
    "1\r\n{\r\n0\r\n\r\n",
    "zz\r\n{}\r\n0\r\n\r\n",
    "-1\r\n",
    "0x2\r\n{}\r\n0\r\n\r\n",
  ],
  ...["2\r\n{}0\r\n\r\n", "2\n{}\n0\n\n", "1\r\n{}\r\n0\r\n\r\n", "2 \r\n{}\r\n0\r\n\r\n", "\r\n"],
  ...[
    "2;a=b\r\n{}\r\n0\r\nX: y\r\n\r\n",
    "2\r\n{}\r\n0\r\nbad trailer\r\n\r\n",
    "ffffffffffffffff\r\n",
  ],
  ...["2\r\n{}\r\n0\r\n", "3\r\n{}\r\n", "+2\r\n{}\r\n0\r\n\r\n", "2\r\n{}\r\n00000\r\n\r\n"],
  ...["000000000000000002\r\n{}\r\n0\r\n\r\n", "2;" + "x".repeat(70_000) + "\r\n{}\r\n0\r\n\r\n"],
];
const PREFACES = [
  ...["\r\n", "\r\n\r\n\r\n", "\n", " ", "\0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
];

/** The bytes of a request that is wrong in one way, or sometimes in none. */
export function mutateHttp(random: SeededRandom, request: FuzzRequest): Buffer {
  const mutated = { ...request, headers: [...request.headers] };
  return random.pick(MUTATIONS)(random, mutated);
}

type Mutation = (random: SeededRandom, request: FuzzRequest) => Buffer;

const MUTATIONS: readonly Mutation[] = [
  (random, request) => toBytes({ ...request, method: random.pick(METHODS) }),
  (random, request) => toBytes({ ...request, target: random.pick(TARGETS) }),
  (random, request) => toBytes({ ...request, target: hugeTarget(random, request.target) }),
  changeVersion,
  changeLength,
  changeLength,
  changeCoding,
  addLines,
  addLines,
  repeatHeader,
  removeHeader,
  hugeHeader,
  manyHeaders,
  foldHeader,
  changeLineEnds,
  goodChunks,
  badChunks,
  badChunks,
  putBefore,
  putBehind,
];

function latin1(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

/** The head of a request and its body, for changes that are none of its parts. */
function split(request: FuzzRequest): [head: string, body: Buffer] {
  const bytes = toBytes(request);
  const bodyBytes = request.body?.length ?? 0;
  const headEnd = bytes.length - bodyBytes;
  return [bytes.toString("latin1", 0, headEnd), bytes.subarray(headEnd)];
}

function changeHead(request: FuzzRequest, change: (head: string) => string): Buffer {
  const [head, body] = split(request);
  return Buffer.concat([latin1(change(head)), body]);
}

/** Replaces the first match by text in which `$` means itself. */
function replace(text: string, pattern: RegExp, by: string): string {
  return text.replace(pattern, () => by);
}

function hugeTarget(random: SeededRandom, target: string): string {
  const length = random.pick([1000, 8000, 60_000, 66_000]);
  return target + random.pick(["?x=", "&x=", "/", "%"]) + "a".repeat(length);
}

function changeVersion(random: SeededRandom, request: FuzzRequest): Buffer {
  return changeHead(request, (head) => replace(head, /HTTP\/1\.1/, random.pick(VERSIONS)));
}

function changeLength(random: SeededRandom, request: FuzzRequest): Buffer {
  const { length } = request.body ?? "";
  const near = [length - 1, length + 1, length * 2, Math.floor(length / 2)].map(String);
  const line = `Content-Length: ${random.pick(random.pick([LENGTHS, near]))}\r\n`;
  return changeHead(request, (head) => {
    const isAdded = random.chance(0.3) || request.body === null;
    return isAdded
      ? replace(head, /\r\n\r\n$/, `\r\n${line}\r\n`)
      : replace(head, /Content-Length: .*\r\n/, line);
  });
}

function changeCoding(random: SeededRandom, request: FuzzRequest): Buffer {
  request.headers.push(["Transfer-Encoding", random.pick(CODINGS)]);
  return random.chance(0.5)
    ? toBytes(request)
    : changeHead(request, (head) => replace(head, /Content-Length: .*\r\n/, ""));
}

function addLines(random: SeededRandom, request: FuzzRequest): Buffer {
  const lines = Array.from({ length: 1 + random.below(3) }, () => `${random.pick(LINES)}\r\n`);
  const isFirst = random.chance(0.5);
  return changeHead(
    request,
    (head) =>
      isFirst
        ? replace(head, /\r\n/, `\r\n${lines.join("")}`)
        : replace(head, /\r\n\r\n$/, `\r\n${lines.join("")}\r\n`),
  );
}

function repeatHeader(random: SeededRandom, request: FuzzRequest): Buffer {
  const header = random.pick(request.headers);
  const count = random.pick([1, 1, 2, 100]);
  return toBytes({ ...request, headers: [...request.headers, ...Array(count).fill(header)] });
}

function removeHeader(random: SeededRandom, request: FuzzRequest): Buffer {
  if (request.body !== null && random.chance(0.5)) {
    return changeHead(request, (head) => replace(head, /Content-Length: .*\r\n/, ""));
  }
  request.headers.splice(random.below(request.headers.length), 1);
  return toBytes(request);
}

function hugeHeader(random: SeededRandom, request: FuzzRequest): Buffer {
  const size = random.pick([1000, 8000, 16_000, 60_000, 66_000, 200_000]);
  const huge = "x".repeat(size);
  request.headers.push(random.pick([["X", huge], [huge, "x"], ["Authorization", huge]]));
  return toBytes(request);
}

function manyHeaders(random: SeededRandom, request: FuzzRequest): Buffer {
  const count = random.pick([90, 200, 3000, 20_000]);
  for (let n = 0; n < count; n++) request.headers.push([`X-${n}`, ""]);
  return toBytes(request);
}

function foldHeader(random: SeededRandom, request: FuzzRequest): Buffer {
  const fold = random.pick(["\r\n ", "\r\n\t", "\r\n\r\n ", "\n ", "\r\n  \t "]);
  return changeHead(request, (head) => replace(head, /: /, `:${fold}`));
}

function changeLineEnds(random: SeededRandom, request: FuzzRequest): Buffer {
  const end = random.pick(["\n", "\r", "\r\r\n", "\n\r", "\r\n\r"]);
  const isOne = random.chance(0.5);
  return changeHead(
    request,
    (head) => isOne ? replace(head, /\r\n/, end) : head.replaceAll("\r\n", end),
  );
}

function goodChunks(random: SeededRandom, request: FuzzRequest): Buffer {
  const body = request.body ?? randomBytes(random, 50);
  return toChunkedBytes(request, cutIntoPieces(random, body, random.pick([1, 5, 200])));
}

/** Chunks that are none, or the right ones with a place spoiled. */
function badChunks(random: SeededRandom, request: FuzzRequest): Buffer {
  if (random.chance(0.5)) {
    request.headers.push(["Transfer-Encoding", "chunked"]);
    return Buffer.concat([toBytes({ ...request, body: null }), latin1(random.pick(CHUNKS))]);
  }
  const bytes = goodChunks(random, request);
  const at = bytes.indexOf("\r\n\r\n") + random.below(12);
  if (at < bytes.length) bytes[at] = random.below(256);
  return bytes;
}

function putBefore(random: SeededRandom, request: FuzzRequest): Buffer {
  return Buffer.concat([latin1(random.pick(PREFACES)), toBytes(request)]);
}

/** More of it, or something else, right behind. */
function putBehind(random: SeededRandom, request: FuzzRequest): Buffer {
  const bytes = toBytes(request);
  const behind = random.pick([bytes, latin1(random.pick(PREFACES)), randomBytes(random, 200)]);
  const count = random.pick([1, 1, 2, 20]);
  return Buffer.concat([bytes, ...Array<Buffer>(count).fill(behind)]);
}
