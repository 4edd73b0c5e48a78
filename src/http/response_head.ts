/** Formats the head of a response (RFC 9112 section 4). */
import { STATUS_CODES } from "node:http";

/** Framing of a response body. */
export type ResponseFraming =
  /** Length in bytes. */
  | number
  | "chunked"
  /** Until the connection closes, for HTTP/1.0. */
  | "close"
  /** Given by the response's own headers, or none for HEAD. */
  | "own";

/** @param keepsAlive whether the connection stays open. */
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

/** Formats the date (RFC 9110 section 5.6.7), once per second. */
function httpDate(nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000);
  if (seconds !== dateSeconds) {
    dateSeconds = seconds;
    date = new Date(nowMs).toUTCString();
  }
  return date;
}
