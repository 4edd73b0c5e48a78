/** Heads of requests: what is taken, and all that two readers could understand differently. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MalformedRequestError } from "../../src/http/message.ts";
import { headerOf, parseRequestHead } from "../../src/http/request_head.ts";

function head(requestLine: string, ...headers: string[]): string {
  return [requestLine, ...headers].join("\r\n");
}

const GET = "GET / HTTP/1.1";
const POST = "POST / HTTP/1.1";

const TAKEN: Array<[title: string, text: string, parsed: object]> = [
  ["no headers", GET, { method: "GET", target: "/", headers: [], bodyBytes: 0 }],
  ["any token as method", "b!r#e$w HTTP/1.1 HTTP/1.1", { method: "b!r#e$w", target: "HTTP/1.1" }],
  ["names in lowercase", head(GET, "X-Ab: C"), { headers: ["x-ab", "C"] }],
  ["a value without blanks around", head(GET, "a: \t b\tc \t"), { headers: ["a", "b\tc"] }],
  ["a value of no-break spaces", head(GET, "a:\xa0"), { headers: ["a", "\xa0"] }],
  ["a declared length", head(POST, "Content-Length: 012"), { bodyBytes: 12 }],
  [
    "an enormous length as one nobody can send",
    head(POST, `Content-Length: ${"9".repeat(400)}`),
    { bodyBytes: Number.MAX_SAFE_INTEGER },
  ],
  ["chunks", head(POST, "Transfer-Encoding: Chunked"), { bodyBytes: null }],
  ["a connection that is kept", GET, { keepsAlive: true, isHttp11: true }],
  ["one to be closed", head(GET, "Connection: x, Close"), { keepsAlive: false }],
  ["HTTP/1.0", "GET / HTTP/1.0", { keepsAlive: false, isHttp11: false }],
  ["an expectation", head(POST, "Expect: 100-Continue"), { expectsContinue: true }],
  ["none", head(POST, "Expect: something"), { expectsContinue: false }],
];

for (const [title, text, expected] of TAKEN) {
  test(`parseRequestHead() takes ${title}`, () => {
    const parsed: object = parseRequestHead(text);
    for (const [name, value] of Object.entries(expected)) {
      assert.deepEqual(Reflect.get(parsed, name), value, name);
    }
  });
}

const REFUSED: Array<[title: string, text: string]> = [
  ["an empty request line", ""],
  ["a request line without a version", "GET /"],
  ["two blanks in the request line", "GET  / HTTP/1.1"],
  ["a blank behind the request line", "GET / HTTP/1.1 "],
  ["a blank before the request line", " GET / HTTP/1.1"],
  ["a tab in the request line", "GET\t/ HTTP/1.1"],
  ["a method that is no token", "G@T / HTTP/1.1"],
  ["a target beyond ASCII", "GET /\xe9 HTTP/1.1"],
  ["a NUL in the target", "GET /\0 HTTP/1.1"],
  ["a version in lowercase", "GET / http/1.1"],
  ["HTTP/2.0", "PRI * HTTP/2.0"],
  ["HTTP/1.2", "GET / HTTP/1.2"],
  ["HTTP/0.9", "GET / HTTP/0.9"],
  ["a header without a colon", head(GET, "Host")],
  ["a header without a name", head(GET, ": a")],
  ["a blank before the colon", head(GET, "Host : a")],
  ["a blank in a name", head(GET, "Ho st: a")],
  ["a line that continues another", head(GET, "a: b", " c")],
  ["an empty line that continues another", head(GET, "a: b", "\t")],
  ["a line end of LF alone", `${GET}\nHost: a`],
  ["a CR alone", head(GET, "a: b\rc")],
  ["a NUL in a value", head(GET, "a: b\0c")],
  ["a DEL in a value", head(GET, "a: \x7f")],
  ["two lengths", head(POST, "Content-Length: 1", "Content-Length: 2")],
  ["one length twice", head(POST, "Content-Length: 1", "Content-Length: 1")],
  ["a list of lengths", head(POST, "Content-Length: 1, 1")],
  ["an empty length", head(POST, "Content-Length:")],
  ["a length with a sign", head(POST, "Content-Length: +1")],
  ["a negative length", head(POST, "Content-Length: -1")],
  ["a hexadecimal length", head(POST, "Content-Length: 0x1")],
  ["a length with a point", head(POST, "Content-Length: 1.0")],
  ["a length and chunks", head(POST, "Content-Length: 1", "Transfer-Encoding: chunked")],
  ["chunks and a length", head(POST, "Transfer-Encoding: chunked", "Content-Length: 1")],
  ["chunks within chunks", head(POST, "Transfer-Encoding: chunked, chunked")],
  ["chunks twice", head(POST, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked")],
  ["a compressed body", head(POST, "Transfer-Encoding: gzip, chunked")],
  ["identity as coding", head(POST, "Transfer-Encoding: identity")],
  ["no coding", head(POST, "Transfer-Encoding:")],
  ["a coding in quotes", head(POST, 'Transfer-Encoding: "chunked"')],
  ["a coding behind a vertical tab", head(POST, "Transfer-Encoding: \x0bchunked")],
  ["chunks on HTTP/1.0", head("POST / HTTP/1.0", "Transfer-Encoding: chunked")],
];

for (const [title, text] of REFUSED) {
  test(`parseRequestHead() refuses ${title}`, () => {
    assert.throws(() => parseRequestHead(text), MalformedRequestError);
  });
}

test("headerOf() joins repeated headers and tells absent from empty", () => {
  const { headers } = parseRequestHead(head(GET, "a: 1", "b:", "A: 2"));
  assert.deepEqual(["a", "b", "c"].map((name) => headerOf(headers, name)), ["1, 2", "", null]);
});
