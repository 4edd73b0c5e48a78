/** Requests as bytes, and what is no request. */
export const HOST = "Host: localhost\r\n";

export function get(path: string, headers = ""): string {
  return `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`;
}

export function post(path: string, body: unknown, headers = ""): string {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return `POST ${path} HTTP/1.1\r\n${HOST}${headers}Content-Length: ${text.length}\r\n\r\n${text}`;
}

export const MALFORMED: Array<[title: string, bytes: string]> = [
  ["no HTTP", "hello there\r\n\r\n"],
  ["a TLS greeting", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
  ["nothing but line ends", "\r\n\r\n\r\n"],
  ["a header without a colon", `GET /v1/events HTTP/1.1\r\n${HOST}Accept\r\n\r\n`],
  ["a blank before the colon", "GET /v1/events HTTP/1.1\r\nHost : a\r\n\r\n"],
  ["a NUL in a header", get("/v1/events", "X: a\0b\r\n")],
  ["a control character in the target", get("/v1/\x01events")],
  ["an unknown version", `GET /v1/events HTTP/7.3\r\n${HOST}\r\n`],
  ["a negative length", `POST /v1/events HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n`],
  ["a length that is no number", `POST /v1/events HTTP/1.1\r\n${HOST}Content-Length: x\r\n\r\n`],
  [
    "an endless length",
    `POST /v1/events HTTP/1.1\r\n${HOST}Content-Length: ${"9".repeat(40)}\r\n\r\n`,
  ],
  [
    "two lengths",
    `POST /v1/events HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}`,
  ],
  [
    "a length and chunks",
    `POST /v1/events HTTP/1.1\r\n${HOST}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}`,
  ],
  [
    "a chunk of no size",
    `POST /v1/events HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`,
  ],
  [
    "a chunk that is longer than its size",
    `POST /v1/events HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n`,
  ],
  ["an unknown transfer coding", `POST /v1/events HTTP/1.1\r\n${HOST}Transfer-Encoding: x\r\n\r\n`],
  ["a CONNECT", `CONNECT a:1 HTTP/1.1\r\n${HOST}\r\nmore`],
  ["100 KiB of head", `GET /v1/events HTTP/1.1\r\nX: ${"a".repeat(100 * 1024)}\r\n\r\n`],
];
