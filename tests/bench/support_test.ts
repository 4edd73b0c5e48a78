/** Parts of the load generator in which a bug would distort measurements. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { LatencyHistogram } from "../../bench/support/latency_histogram.ts";
import { ResponseParser } from "../../bench/support/response_parser.ts";

const HEAD = "HTTP/1.1 200 OK\r\n";
const RESPONSES = {
  "with a length": `${HEAD}Content-Length: 5\r\nX: y\r\n\r\nhello`,
  "in chunks":
    `${HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;e=1\r\nlo\r\n0\r\na: b\r\n\r\n`,
};
for (const [name, text] of Object.entries(RESPONSES)) {
  test(`ResponseParser finds the end of a response ${name}, however its bytes are split`, () => {
    const bytes = Buffer.from(text);
    const parser = new ResponseParser();
    for (let size = 1; size <= bytes.length; size++) {
      for (let at = 0; at + size < bytes.length; at += size) {
        assert.equal(parser.push(bytes.subarray(at, at + size)), null);
      }
      const rest = bytes.length % size === 0 ? size : bytes.length % size;
      const response = { status: 200, bodyBytes: 5, bodyEnd: Buffer.from("hello") };
      assert.deepEqual(parser.push(bytes.subarray(bytes.length - rest)), response);
    }
  });
}

test("ResponseParser rejects a response without a length, and data after the end of one", () => {
  for (const rest of ["connection: close\r\n\r\n", "content-length: 1\r\n\r\nab"]) {
    assert.throws(() => new ResponseParser().push(Buffer.from(HEAD + rest)));
  }
});

test("LatencyHistogram.quantileMs() is accurate to 1% and covers very long latencies", () => {
  const latencies = new LatencyHistogram();
  assert.equal(latencies.quantileMs(0.5), 0);
  for (let ms = 1; ms <= 1000; ms++) latencies.record(ms);
  for (const share of [0.01, 0.5, 0.99, 1]) {
    const error = latencies.quantileMs(share) / (share * 1000) - 1;
    assert(Math.abs(error) <= 0.0101, `off by ${error} at ${share}`);
  }
  latencies.record(1e12);
  assert(latencies.quantileMs(1) > 3_600_000);
});
