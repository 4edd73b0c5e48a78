/** Parses HTTP/1.1 responses (RFC 9112) and keeps what a client library would hide. */
import assert from "node:assert/strict";
import type { Buffer } from "node:buffer";

export interface RawResponse {
  status: number;
  /** Header values by lowercase name. */
  headers: Record<string, string>;
  body: string;
  /** Whether the body is complete, according to the headers. */
  isComplete: boolean;
}

export interface ParsedResponse {
  response: RawResponse;
  /** Offset of the next response. */
  endBytes: number;
}

const HEAD_END = "\r\n\r\n";

const STATUS_LINE = /^HTTP\/1\.1 ([1-5][0-9]{2}) [A-Za-z ]+$/;
const HEADER_LINE = /^([a-z-]+): ([\x20-\x7e]+)$/i;
const NEXT_RESPONSE = "HTTP/1.1 ";

/**
 * Skips 100 Continue. @returns null if more bytes are needed. `isOver` means that no more will
 * come.
 * @param method null if unknown. The response is then considered a response to HEAD, without a
 *   body, if its head is followed directly by the next response or by the end of the connection.
 * @throws {AssertionError} if the bytes are not a response from the service.
 */
export function parseResponse(
  bytes: Buffer,
  method: string | null,
  isOver: boolean,
): ParsedResponse | null {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd < 0) return null;
  const bodyStart = headEnd + HEAD_END.length;
  const { status, headers } = parseHead(bytes.toString("latin1", 0, headEnd));
  if (status === 100) {
    const next = parseResponse(bytes.subarray(bodyStart), method, isOver);
    return next && { ...next, endBytes: next.endBytes + bodyStart };
  }
  const parsed = parseBody(bytes.subarray(bodyStart), method, headers, isOver);
  if (parsed === null) return null;
  const { endBytes, ...body } = parsed;
  return { response: { status, headers, ...body }, endBytes: bodyStart + endBytes };
}

function parseHead(head: string): { status: number; headers: Record<string, string> } {
  const [statusLine = "", ...lines] = head.split("\r\n");
  const status = STATUS_LINE.exec(statusLine)?.[1];
  assert.ok(status !== undefined, `invalid status line: ${statusLine}`);
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    assert.ok(name !== undefined && !(name.toLowerCase() in headers), `one header: ${line}`);
    headers[name.toLowerCase()] = value!;
  }
  return { status: Number(status), headers };
}

type ParsedBody = Pick<RawResponse, "body" | "isComplete"> & { endBytes: number };

function parseBody(
  bytes: Buffer,
  method: string | null,
  headers: Record<string, string>,
  isOver: boolean,
): ParsedBody | null {
  const isBodyless = method === "HEAD" || method === null && (
        bytes.toString("latin1", 0, NEXT_RESPONSE.length) === NEXT_RESPONSE ||
        isOver && bytes.length === 0
      );
  if (isBodyless) return { body: "", endBytes: 0, isComplete: true };
  if (headers["transfer-encoding"] === "chunked") return parseChunks(bytes, isOver);
  const lengthBytes = Number(headers["content-length"] ?? bytes.length);
  const isComplete = bytes.length >= lengthBytes;
  if (!isComplete && !isOver) return null;
  const endBytes = Math.min(lengthBytes, bytes.length);
  return { body: bytes.toString("utf8", 0, endBytes), endBytes, isComplete };
}

function parseChunks(bytes: Buffer, isOver: boolean): ParsedBody | null {
  const texts: string[] = [];
  let position = 0;
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", position);
    const sizeBytes = lineEnd < 0 ? NaN : parseInt(bytes.toString("latin1", position, lineEnd), 16);
    const end = lineEnd + 2 + sizeBytes + 2;
    if (!(end <= bytes.length)) {
      if (!isOver) return null;
      return { body: texts.join(""), endBytes: bytes.length, isComplete: false };
    }
    if (sizeBytes === 0) return { body: texts.join(""), endBytes: end, isComplete: true };
    texts.push(bytes.toString("utf8", lineEnd + 2, end - 2));
    position = end;
  }
}
