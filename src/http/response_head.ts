/** Writes the head of a response (RFC 9112 section 4). */
import { STATUS_CODES } from "node:http";

/** How the end of a response's body is found. */
export type ResponseFraming =
  /** By its length in bytes. */
  | number
  | "chunked"
  /** By the end of the connection, for a client that knows no chunks. */
  | "close"
  /** The response says itself: to HEAD, or with a `content-length` among its headers. */
  | "own";

/** @param keepsAlive whether the connection is used again. */
export function formatResponseHead(
  status: number,
  headers: Readonly<Record<string, string>>,
  framing: ResponseFraming,
  keepsAlive: boolean,
): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n`;
  for (const name in headers) {
    if (name !== "connection") head += `${name}: ${headers[name]}\r\n`;
  }
  if (typeof framing === "number") head += `content-length: ${framing}\r\n`;
  else if (framing === "chunked") head += "transfer-encoding: chunked\r\n";
  if (!keepsAlive) head += "connection: close\r\n";
  return `${head}date: ${httpDate(Date.now())}\r\n\r\n`;
}

let dateSeconds = 0;
let date = "";

/** The current date as RFC 9110 section 5.6.7 has it; made once a second. */
function httpDate(nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000);
  if (seconds !== dateSeconds) {
    dateSeconds = seconds;
    date = new Date(nowMs).toUTCString();
  }
  return date;
}
