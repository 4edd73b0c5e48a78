/** The load generator's view of a response, whatever pieces it arrives in. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { type RawResponse, ResponseParser } from "../../bench/support/response_parser.ts";

const RESPONSES: [string, string, RawResponse][] = [
  [
    "with a length",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello",
    { status: 200, bodyBytes: 5, bodyEnd: Buffer.from("hello") },
  ],
  [
    "without a body",
    "HTTP/1.1 429 Too Many Requests\r\ncontent-length:0\r\n\r\n",
    { status: 429, bodyBytes: 0, bodyEnd: Buffer.alloc(0) },
  ],
  [
    "in chunks",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;ext=1\r\nlo\r\n0\r\n\r\n",
    { status: 200, bodyBytes: 5, bodyEnd: Buffer.from("hello") },
  ],
  [
    "in chunks with a trailer",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\na: b\r\n\r\n",
    { status: 200, bodyBytes: 10, bodyEnd: Buffer.from("0123456789") },
  ],
];
for (const [name, text, expected] of RESPONSES) {
  test(`ResponseParser finds the end of a response ${name}, however it is cut`, () => {
    const bytes = Buffer.from(text);
    const parser = new ResponseParser();
    for (let size = 1; size <= bytes.length; size++) {
      for (let at = 0; at + size < bytes.length; at += size) {
        assert.equal(parser.push(bytes.subarray(at, at + size)), null);
      }
      const rest = bytes.length % size === 0 ? size : bytes.length % size;
      assert.deepEqual(parser.push(bytes.subarray(bytes.length - rest)), expected);
    }
  });
}

test("ResponseParser keeps the end of a long body", () => {
  const body = Array.from({ length: 5000 }, (_, index) => index % 10).join("");
  const response = new ResponseParser().push(
    Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`),
  );
  assert.equal(response?.bodyBytes, 5000);
  assert.equal(String(response?.bodyEnd), body.slice(-1024));
});

const REFUSED: [string, string][] = [
  ["without a length", "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"],
  ["followed by more data", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab"],
  ["with an endless head", "HTTP/1.1 200 OK\r\n" + "x".repeat(20_000)],
];
for (const [name, text] of REFUSED) {
  test(`ResponseParser refuses a response ${name}`, () => {
    assert.throws(() => new ResponseParser().push(Buffer.from(text)));
  });
}
