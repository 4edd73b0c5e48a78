/**
 * Reads the head of a request: request line and header section (RFC 9112 sections 3 and 5). Strict:
 * what two readers could understand differently is refused, because request smuggling lives on it.
 */
import { HEADER_BYTES_MAX } from "../limits.ts";
import { MalformedRequestError } from "./message.ts";

export interface RequestHead {
  readonly method: string;
  /** As it came. */
  readonly target: string;
  /** Lowercase names, each followed by its value. */
  readonly headers: readonly string[];
  /** Length of the body; null when it comes in chunks. */
  readonly bodyBytes: number | null;
  /** Whether the client can take chunks and another response on its connection. */
  readonly isHttp11: boolean;
  /** Whether the client wants to use the connection again. */
  readonly keepsAlive: boolean;
  /** Whether the client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TARGET = /^[\x21-\x7e]+$/;
/** What has no place in a head, whether it is whole or not: controls, and line ends but CR LF. */
const MISPLACED = /[^\t\r\n\x20-\x7e\x80-\xff]|\r(?=[^\n])|(?:^|[^\r])\n/;
const LENGTH = /^[0-9]+$/;

/**
 * Checks a part of a head, as early as it is there.
 * @throws {MalformedRequestError}
 */
export function checkHeadText(text: string): void {
  if (MISPLACED.test(text)) {
    throw new MalformedRequestError(
      "the head of the request has a control character or a line that does not end with CR LF",
    );
  }
}

/** @throws {MalformedRequestError} for a head that is longer than a head may be. */
export function checkHeadSize(sizeBytes: number): void {
  if (sizeBytes <= HEADER_BYTES_MAX) return;
  throw new MalformedRequestError(
    `request line and headers are longer than ${HEADER_BYTES_MAX} bytes`,
  );
}

/**
 * @param text the head, a character for each byte, without the empty line that ends it.
 * @throws {MalformedRequestError}
 */
export function parseRequestHead(text: string): RequestHead {
  checkHeadText(text);
  const lines = text.split("\r\n");
  const [method, target, version, ...rest] = lines[0]!.split(" ");
  if (version === undefined || rest.length > 0 || !TOKEN.test(method!) || !TARGET.test(target!)) {
    throw new MalformedRequestError("the request line must be <method> <target> HTTP/1.1");
  }
  if (version !== "HTTP/1.1" && version !== "HTTP/1.0") {
    throw new MalformedRequestError("this service speaks HTTP/1.1");
  }
  const headers = parseHeaders(lines);
  const isHttp11 = version === "HTTP/1.1";
  return {
    method: method!,
    target: target!,
    headers,
    bodyBytes: bodyLength(headers, isHttp11),
    isHttp11,
    keepsAlive: isHttp11 && !hasToken(headers, "connection", "close"),
    expectsContinue: isHttp11 && hasToken(headers, "expect", "100-continue"),
  };
}

/** Value of a header by its lowercase name, repeated ones joined by ", "; null when absent. */
export function headerOf(headers: readonly string[], name: string): string | null {
  let joined: string | null = null;
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at] !== name) continue;
    joined = joined === null ? headers[at + 1]! : `${joined}, ${headers[at + 1]}`;
  }
  return joined;
}

function parseHeaders(lines: readonly string[]): string[] {
  const headers: string[] = [];
  for (let at = 1; at < lines.length; at++) {
    const line = lines[at]!;
    const colon = line.indexOf(":");
    // A line that begins with a blank continues the one before (obs-fold), which is forbidden.
    if (colon < 0 || !TOKEN.test(line.slice(0, colon))) {
      throw new MalformedRequestError("a header line must be <name>: <value>");
    }
    headers.push(line.slice(0, colon).toLowerCase(), trimBlanks(line, colon + 1));
  }
  return headers;
}

/** What follows `start`, without blanks around it. `trim()` would drop other characters too. */
function trimBlanks(line: string, start: number): string {
  let end = line.length;
  while (start < end && isBlank(line.charCodeAt(start))) start++;
  while (end > start && isBlank(line.charCodeAt(end - 1))) end--;
  return line.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** RFC 9112 section 6.3. Both ways to frame a body at once, or one of them twice, are refused. */
function bodyLength(headers: readonly string[], isHttp11: boolean): number | null {
  const length = headerOf(headers, "content-length");
  const coding = headerOf(headers, "transfer-encoding");
  if (coding === null) {
    if (length === null) return 0;
    // No client can send a larger one.
    if (LENGTH.test(length)) return Math.min(Number(length), Number.MAX_SAFE_INTEGER);
    throw new MalformedRequestError("content-length must be one decimal number");
  }
  if (length !== null || !isHttp11 || coding.toLowerCase() !== "chunked") {
    throw new MalformedRequestError(
      "transfer-encoding must be chunked, on HTTP/1.1, without a content-length",
    );
  }
  return null;
}

function hasToken(headers: readonly string[], name: string, token: string): boolean {
  const value = headerOf(headers, name);
  if (value === null) return false;
  return value.split(",").some((item) => item.trim().toLowerCase() === token);
}
