/** Parts of the load generator in which a bug would distort measurements. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { prepareBatch } from "../../src/event/batch.ts";
import { LatencyHistogram } from "../../bench/support/latency_histogram.ts";
import { parseBenchOptions } from "../../bench/support/options.ts";
import { formatTable } from "../../bench/support/report.ts";
import { BatchRequest, PAYLOAD_BYTES, typicalPayload } from "../../bench/support/requests.ts";
import { ResponseParser } from "../../bench/support/response_parser.ts";
import { replayWorkload } from "../../bench/support/workloads.ts";

test("BatchRequest builds valid batches with unique ids and payloads of the requested size", () => {
  const request = new BatchRequest("a", 3);
  const ids = new Set<string>();
  for (let batch = 0; batch < 20; batch++) {
    const bytes = request.next();
    const length = /content-length: ([0-9]+)/i.exec(bytes.toString("latin1"))?.[1];
    const body = bytes.subarray(bytes.indexOf("\r\n\r\n") + 4);
    assert.equal(body.length, Number(length));
    const { batchId, events } = prepareBatch(body);
    assert.equal(events.count, 3);
    ids.add(batchId);
  }
  assert.equal(ids.size, 20);
  assert.equal(Buffer.byteLength(JSON.stringify(typicalPayload(7))), PAYLOAD_BYTES);
});

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

test("formatTable() aligns columns", () => {
  const rows = [
    { row: "a", count: 1234567, time: null },
    { row: "long name", count: 1, time: 0.5 },
  ];
  const lines = [
    "row            count  time",
    "a          1,234,567     -",
    "long name          1   0.5",
    "",
  ];
  assert.equal(formatTable(rows), lines.join("\n"));
});

test("parseBenchOptions() rejects invalid options", () => {
  const rows = ["a", "b"];
  assert.deepEqual(parseBenchOptions(["--rows", "b"], rows).rows, ["b"]);
  for (const args of [["--rows", "c"], ["--seconds", "0"], ["--events", "x"], ["--nothing"]]) {
    assert.throws(() => parseBenchOptions(args, rows), Error, args.join(" "));
  }
});

test("replayWorkload() reads to the end, restarts, and counts each event once", () => {
  const id = "01890a5d-ac96-774b-bcce-b302099a80";
  const pageEnd = (nextAfter: string) =>
    Buffer.from(`...],"next_after":"${id}${nextAfter}","snapshot_through_event_id":"${id}ff"}`);
  const workload = replayWorkload({ events: 25, pageEvents: 10 });
  const counts = ["01", "02", "ff", "01"].map((nextAfter, place) => {
    assert.equal(workload.next().includes("after="), place % 3 !== 0);
    return workload.accept({ status: 200, bodyBytes: 1, bodyEnd: pageEnd(nextAfter) });
  });
  assert.deepEqual(counts, [10, 10, 5, 10]);
  const shorter = { status: 200, bodyBytes: 1, bodyEnd: pageEnd("ff") };
  assert.throws(() => workload.accept(shorter), /ended after 10/);
});
