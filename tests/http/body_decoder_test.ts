/** Bodies in the bytes of a connection, split at any position. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { createBodyDecoder } from "../../src/http/body_decoder.ts";
import { MalformedRequestError } from "../../src/http/message.ts";
import { HEADER_BYTES_MAX } from "../../src/limits.ts";

interface Decoded {
  content: string;
  /** The bytes after the body. */
  rest: string;
  isComplete: boolean;
}

/** Decodes `text` in pieces of `pieceBytes`. */
function decode(bodyBytes: number | null, text: string, pieceBytes: number): Decoded {
  const decoder = createBodyDecoder(bodyBytes);
  let content = "";
  let rest = "";
  for (let at = 0; at < text.length; at += pieceBytes) {
    const bytes = Buffer.from(text.slice(at, at + pieceBytes), "latin1");
    const end = decoder.decode(bytes, 0, (piece) => content += piece.toString("latin1"));
    rest += bytes.toString("latin1", end);
  }
  return { content, rest, isComplete: decoder.isComplete };
}

const TAKEN: Array<[title: string, bodyBytes: number | null, text: string, content: string]> = [
  ["no body", 0, "", ""],
  ["a declared length", 3, "abc", "abc"],
  ["no chunk but the last", null, "0\r\n\r\n", ""],
  ["chunks", null, "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", "abc"],
  ["a size in hexadecimal", null, "0A\r\n0123456789\r\n00\r\n\r\n", "0123456789"],
  ["line ends as content", null, "4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n"],
  ["extensions", null, '1;a\r\na\r\n1 ; b="c"\r\nb\r\n0;d\r\n\r\n', "ab"],
  ["trailers", null, "1\r\na\r\n0\r\nX: y\r\nZ:\r\n\r\n", "a"],
];

for (const [title, bodyBytes, text, content] of TAKEN) {
  test(`BodyDecoder accepts ${title}, and stops there`, () => {
    const next = "GET / HTTP/1.1\r\n";
    for (const pieceBytes of [1, 2, 3, 5, 1000]) {
      const expected = { content, rest: next, isComplete: true };
      assert.deepEqual(decode(bodyBytes, text + next, pieceBytes), expected);
    }
  });
}

test("BodyDecoder waits for the rest of a body", () => {
  for (const [bodyBytes, text] of [[3, "ab"], [null, "2\r\nab\r\n0\r\n\r"]] as const) {
    const { content, isComplete } = decode(bodyBytes, text, 1);
    assert.deepEqual([content, isComplete], ["ab", false]);
  }
});

const REFUSED: Array<[title: string, text: string]> = [
  ["no size", "\r\n"],
  ["a size that is no number", "z\r\n"],
  ["a size with a sign", "+1\r\na\r\n"],
  ["a size with a prefix", "0x1\r\na\r\n"],
  ["a blank before the size", " 1\r\na\r\n"],
  ["a blank behind the size", "1 \r\na\r\n"],
  ["a size beyond every body", "1000000000000\r\n"],
  ["a size line that ends with LF alone", "1\na\r\n"],
  ["a CR within the size line", "1\r\ra\r\n"],
  ["a control character in an extension", "1;\0\r\na\r\n"],
  ["a chunk that is longer than its size", "1\r\nab\r\n"],
  ["a chunk that ends with LF alone", "1\r\na\n0\r\n\r\n"],
  ["a chunk without its line end", "1\r\na0\r\n\r\n"],
  ["a trailer without a colon", "0\r\nX\r\n\r\n"],
  ["a trailer that continues another", "0\r\nX: y\r\n z\r\n\r\n"],
  ["an endless extension", `1;${"a".repeat(HEADER_BYTES_MAX)}\r\na\r\n`],
  ["extensions without end", `1;${"a".repeat(1000)}\r\na\r\n`.repeat(HEADER_BYTES_MAX / 1000 + 1)],
  ["trailers without end", `0\r\n${"X: y\r\n".repeat(HEADER_BYTES_MAX / 4)}`],
  ["a size line without end", "0".repeat(HEADER_BYTES_MAX + 1)],
];

for (const [title, text] of REFUSED) {
  test(`BodyDecoder refuses ${title}`, () => {
    for (const pieceBytes of [1, 7, text.length]) {
      assert.throws(() => decode(null, text, pieceBytes), MalformedRequestError);
    }
  });
}
