/** The parts of the benchmarks that need no server. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import process from "node:process";
import { test } from "node:test";
import { prepareBatch } from "../../src/event/batch.ts";
import { LatencyHistogram } from "../../bench/support/latency_histogram.ts";
import { parseBenchOptions } from "../../bench/support/options.ts";
import { cpuSeconds, peakMemoryBytes } from "../../bench/support/process_stats.ts";
import { formatTable } from "../../bench/support/report.ts";
import { BatchRequest, PAYLOAD_BYTES, typicalPayload } from "../../bench/support/requests.ts";
import { pagePosition, replayWorkload } from "../../bench/support/workloads.ts";

function bodyOf(request: Buffer): Buffer {
  return request.subarray(request.indexOf("\r\n\r\n") + 4);
}

test("typicalPayload() has the size that the figures name", () => {
  for (const key of [0, 7, 999]) {
    assert.equal(Buffer.byteLength(JSON.stringify(typicalPayload(key))), PAYLOAD_BYTES);
  }
});

test("BatchRequest makes valid batches under ids that differ", () => {
  const request = new BatchRequest("a", 3);
  const ids = new Set<string>();
  for (let batch = 0; batch < 20; batch++) {
    const bytes = request.next();
    const length = /content-length: ([0-9]+)/i.exec(bytes.toString("latin1"))?.[1];
    assert.equal(bodyOf(bytes).length, Number(length));
    const { batchId, events } = prepareBatch(bodyOf(bytes));
    assert.equal(events.count, 3);
    ids.add(batchId);
  }
  assert.equal(ids.size, 20);
});

test("LatencyHistogram.quantileMs() is right within 1 %", () => {
  const latencies = new LatencyHistogram();
  for (let ms = 1; ms <= 1000; ms++) latencies.record(ms);
  for (const share of [0.01, 0.5, 0.99, 1]) {
    const error = latencies.quantileMs(share) / (share * 1000) - 1;
    assert(Math.abs(error) <= 0.0101, `off by ${error} at ${share}`);
  }
});

test("LatencyHistogram takes the shortest and the longest, and nothing", () => {
  const latencies = new LatencyHistogram();
  assert.equal(latencies.quantileMs(0.5), 0);
  latencies.record(0);
  latencies.record(1e12);
  assert.equal(latencies.count, 2);
  assert(latencies.quantileMs(0.5) < 0.01);
  assert(latencies.quantileMs(1) > 3_600_000);
});

test("cpuSeconds() and peakMemoryBytes() tell of a process", () => {
  const cpu = cpuSeconds(process.pid);
  const memory = peakMemoryBytes(process.pid);
  if (process.platform !== "linux") return assert.deepEqual([cpu, memory], [null, null]);
  assert(cpu !== null && cpu >= 0 && cpu < 3600);
  assert(memory !== null && memory > 1e6 && memory < 1e11);
});

test("formatTable() lines columns up", () => {
  const rows = [{ row: "a", count: 1234567, time: null }, {
    row: "long name",
    count: 1,
    time: 0.5,
  }];
  assert.equal(
    formatTable(rows),
    [
      "row            count  time",
      "a          1,234,567     -",
      "long name          1   0.5",
      "",
    ].join("\n"),
  );
});

test("parseBenchOptions() refuses what makes no sense", () => {
  const rows = ["a", "b"];
  assert.deepEqual(parseBenchOptions(["--rows", "b"], rows).rows, ["b"]);
  assert.deepEqual(parseBenchOptions([], rows).rows, rows);
  for (const args of [["--rows", "c"], ["--seconds", "0"], ["--events", "x"], ["--nothing"]]) {
    assert.throws(() => parseBenchOptions(args, rows), Error, args.join(" "));
  }
  assert.throws(() => parseBenchOptions(["--server-runtime", "other"], rows), /deno, node/);
});

const ID = "01890a5d-ac96-774b-bcce-b302099a80";
const pageEnd = (nextAfter: string) =>
  Buffer.from(`...],"next_after":"${ID}${nextAfter}","snapshot_through_event_id":"${ID}ff"}`);

test("pagePosition() reads the end of a replay page", () => {
  assert.deepEqual(pagePosition(pageEnd("01")), {
    nextAfter: `${ID}01`,
    snapshotThrough: `${ID}ff`,
  });
  assert.throws(() => pagePosition(Buffer.from('{"error":"internal_error"}')));
});

test("replayWorkload() reads to the end and starts again, counting each event once", () => {
  const workload = replayWorkload({ events: 25, pageEvents: 10 });
  const counts: number[] = [];
  for (const nextAfter of ["01", "02", "ff", "01"]) {
    const isFirst = counts.length === 0 || counts.length === 3;
    assert.equal(workload.next().includes("after="), !isFirst);
    const response = { status: 200, bodyBytes: 1, bodyEnd: pageEnd(nextAfter) };
    counts.push(workload.accept(response));
  }
  assert.deepEqual(counts, [10, 10, 5, 10]);
  assert.throws(() => {
    workload.accept({ status: 500, bodyBytes: 0, bodyEnd: Buffer.alloc(0) });
  });
});

test("replayWorkload() notices a log that is shorter than it must be", () => {
  const workload = replayWorkload({ events: 25, pageEvents: 10 });
  const last = { status: 200, bodyBytes: 1, bodyEnd: pageEnd("ff") };
  assert.throws(() => workload.accept(last), /ended after 0/);
});
