/** Heads of requests: valid ones, and ambiguous ones that are refused. */
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
  test(`parseRequestHead() accepts ${title}`, () => {
    const parsed: object = parseRequestHead(text);
    for (const [name, value] of Object.entries(expected)) {
      assert.deepEqual(Reflect.get(parsed, name), value, name);
    }
  });
}

/** In addition to `support/smuggling_shapes.ts`. */
const REFUSED: Array<[title: string, text: string]> = [
  ["an empty request line", ""],
  ["two blanks in the request line", "GET  / HTTP/1.1"],
  ["a blank behind the request line", "GET / HTTP/1.1 "],
  ["a blank before the request line", " GET / HTTP/1.1"],
  ["a method that is no token", "G@T / HTTP/1.1"],
  ["HTTP/0.9", "GET / HTTP/0.9"],
  ["a blank in a name", head(GET, "Ho st: a")],
  ["an empty line that continues another", head(GET, "a: b", "\t")],
  ["a length with a point", head(POST, "Content-Length: 1.0")],
  ["chunks on HTTP/1.0", head("POST / HTTP/1.0", "Transfer-Encoding: chunked")],
];

for (const [title, text] of REFUSED) {
  test(`parseRequestHead() refuses ${title}`, () => {
    assert.throws(() => parseRequestHead(text), MalformedRequestError);
  });
}

test("headerOf() joins repeated headers and distinguishes absent from empty", () => {
  const { headers } = parseRequestHead(head(GET, "a: 1", "b:", "A: 2"));
  assert.deepEqual(["a", "b", "c"].map((name) => headerOf(headers, name)), ["1, 2", "", null]);
});
