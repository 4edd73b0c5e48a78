/** Requests as bytes, well-formed and malformed. */
/** Headers of every request. Responses are never compressed, although clients accept encodings. */
export const HOST = "Host: localhost\r\nAccept-Encoding: gzip, br, deflate, zstd, *\r\n";

export function get(path: string, headers = ""): string {
  return `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`;
}

export function post(path: string, body: unknown, headers = ""): string {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return `POST ${path} HTTP/1.1\r\n${HOST}${headers}Content-Length: ${text.length}\r\n\r\n${text}`;
}

/** Malformed requests. `tests/http/support/smuggling_shapes.ts` contains more. */
export const MALFORMED: Array<[title: string, bytes: string]> = [
  ["not HTTP", "hello there\r\n\r\n"],
  ["a TLS ClientHello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
  ["the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["an unfinished head with a NUL", "GET / HTTP/1.1\r\nHost: \0"],
  ["an endless head", "X".repeat(100 * 1024)],
  ["only line endings", "\r\n\r\n\r\n"],
  [
    "an endless length",
    `POST /v1/events HTTP/1.1\r\n${HOST}Content-Length: ${"9".repeat(40)}\r\n\r\n`,
  ],
  [
    "a chunk without a size",
    `POST /v1/events HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`,
  ],
  ["a CONNECT", `CONNECT a:1 HTTP/1.1\r\n${HOST}\r\nmore`],
  ["100 KiB of head", `GET /v1/events HTTP/1.1\r\nX: ${"a".repeat(100 * 1024)}\r\n\r\n`],
];
