import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionError, ProtocolError } from "../../src/client/errors.ts";
import { chunksOf, readLines } from "../../src/client/response_body.ts";
import { collect, errorOf } from "./support/fake_service.ts";

/** A body that arrives in these chunks and then ends or fails. */
function chunks(pieces: string[], failure?: Error): AsyncIterable<Uint8Array> {
  const left = [...pieces];
  const body = new ReadableStream({
    pull(controller) {
      const piece = left.shift();
      if (piece !== undefined) controller.enqueue(new TextEncoder().encode(piece));
      else if (failure === undefined) controller.close();
      else controller.error(failure);
    },
  }, { highWaterMark: 0 });
  return chunksOf("GET /", new Response(body));
}

async function linesOf(pieces: string[], limitBytes = 100): Promise<string[]> {
  const lines = await collect(readLines(chunks(pieces), limitBytes));
  return lines.map((line) => new TextDecoder().decode(line));
}

const CASES: [string[], string[]][] = [
  [[], []],
  [["a\nb\n"], ["a", "b"]],
  [["a", "b\nc", "\n"], ["ab", "c"]],
  [["a\n", "\n", "\nb\n"], ["a", "", "", "b"]],
  [["ab", "", "c", "d\n"], ["abcd"]],
  [["a\nhalf a li"], ["a"]],
];
for (const [pieces, lines] of CASES) {
  test(`readLines() of ${JSON.stringify(pieces)} is ${JSON.stringify(lines)}`, async () => {
    assert.deepEqual(await linesOf(pieces), lines);
  });
}

test("readLines() rejects a line over its limit, complete or not", async () => {
  assert.deepEqual(await linesOf(["12345\n1234\n"], 5), ["12345", "1234"]);
  await assert.rejects(linesOf(["123456\n"], 5), ProtocolError);
  await assert.rejects(linesOf(["123", "456"], 5), ProtocolError);
});

test("readLines() yields the lines before a failure, then throws", async () => {
  const cause = new TypeError("connection reset");
  const lines = readLines(chunks(["a\nb"], cause), 10);
  assert.deepEqual((await lines.next()).value, new TextEncoder().encode("a"));
  assert.equal((await errorOf(ConnectionError, lines.next())).cause, cause);
});
