/** Requests as bytes. */
/** Headers of every request. Responses are never compressed, although clients accept encodings. */
export const HOST = "Host: localhost\r\nAccept-Encoding: gzip, br, deflate, zstd, *\r\n";

export function get(path: string, headers = ""): string {
  return `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`;
}

export function post(path: string, body: unknown, headers = ""): string {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return `POST ${path} HTTP/1.1\r\n${HOST}${headers}Content-Length: ${text.length}\r\n\r\n${text}`;
}
