/**
 * Parses request heads: request line and header section (RFC 9112 sections 3 and 5). Rejects
 * ambiguous heads, because they enable request smuggling.
 */
import { HEADER_LINES_MAX } from "../limits.ts";
import { type HttpRequest, MalformedRequestError } from "./message.ts";

export interface RequestHead
  extends Pick<HttpRequest, "method" | "target" | "bodyBytes" | "isHttp11"> {
  /** Values by lowercase name, with repeated values joined by ", ". */
  readonly headers: ReadonlyMap<string, string>;
  /** Whether the client keeps the connection open. */
  readonly keepsAlive: boolean;
  /** Whether the client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Trims only spaces and tabs. Rejects folded headers (obs-fold), which begin with whitespace. */
const HEADER = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^ \t]+(?:[ \t]+[^ \t]+)*)?[ \t]*$/;
const TARGET = /^[\x21-\x7e]+$/;
/** Matches a control character, or a CR or LF that is not part of CR LF. */
const MISPLACED = /[^\t\r\n\x20-\x7e\x80-\xff]|\r(?=[^\n])|(?:^|[^\r])\n/;
/** A higher minor version is compatible with 1.1 (RFC 9110 section 2.5). */
const VERSION = /^HTTP\/1\.[0-9]$/;
const LENGTH = /^[0-9]+$/;

/** Checks the characters of a partial head. @throws {MalformedRequestError} */
export function checkHeadText(text: string): void {
  if (MISPLACED.test(text)) {
    throw new MalformedRequestError(
      "the request head contains a control character or a line that does not end with CR LF",
    );
  }
}

/** Parses a head in Latin-1, without its empty line. @throws {MalformedRequestError} */
export function parseRequestHead(text: string): RequestHead {
  const lines = text.split("\r\n", HEADER_LINES_MAX + 2);
  if (lines.length > HEADER_LINES_MAX + 1) {
    throw new MalformedRequestError(`the request has more than ${HEADER_LINES_MAX} header lines`);
  }
  checkHeadText(text);
  const [method, target, version, ...rest] = lines[0]!.split(" ");
  if (version === undefined || rest.length > 0 || !TOKEN.test(method!) || !TARGET.test(target!)) {
    throw new MalformedRequestError("the request line must be <method> <target> HTTP/1.1");
  }
  if (!VERSION.test(version)) {
    throw new MalformedRequestError("unsupported HTTP version; use HTTP/1.1");
  }
  const headers = parseHeaders(lines);
  const isHttp11 = version !== "HTTP/1.0";
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

function parseHeaders(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (let at = 1; at < lines.length; at++) {
    const line = lines[at]!;
    const [, named, value = ""] = HEADER.exec(line) ?? [];
    if (named === undefined) {
      throw new MalformedRequestError("a header line must be <name>: <value>");
    }
    const name = named.toLowerCase();
    const other = headers.get(name);
    headers.set(name, other === undefined ? value : `${other}, ${value}`);
  }
  return headers;
}

/** Follows RFC 9112 section 6.3. Rejects combined or repeated framing headers. */
function bodyLength(headers: RequestHead["headers"], isHttp11: boolean): number | null {
  const length = headers.get("content-length");
  const coding = headers.get("transfer-encoding");
  if (coding === undefined) {
    if (length === undefined) return 0;
    // Clamp to a safe integer. No client can send more.
    if (LENGTH.test(length)) return Math.min(Number(length), Number.MAX_SAFE_INTEGER);
    throw new MalformedRequestError("content-length must be a single decimal number");
  }
  if (length !== undefined || !isHttp11 || coding.toLowerCase() !== "chunked") {
    throw new MalformedRequestError(
      "transfer-encoding must be chunked, in HTTP/1.1 and without content-length",
    );
  }
  return null;
}

function hasToken(headers: RequestHead["headers"], name: string, token: string): boolean {
  const items = headers.get(name)?.split(",") ?? [];
  return items.some((item) => item.trim().toLowerCase() === token);
}
