/** The load generator's parsers for replies from peers, and the comparison table. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { comparisonRows, medianOf, type Series } from "../../bench/peers/comparison.ts";
import { type Measurement, NOT_MEASURED } from "../../bench/peers/measurement.ts";
import { parsePgbench, parseRedisBenchmark } from "../../bench/peers/native_tools.ts";
import { int64 } from "../../bench/peers/pg_messages.ts";
import { PgSkimmer } from "../../bench/peers/pg_replies.ts";
import { RespSkimmer } from "../../bench/peers/resp.ts";

interface Skimmer<Reply> {
  expect(replies: number): void;
  push(data: Buffer): Reply | null;
}

/** Feeds a parser the same bytes repeatedly, split into chunks of every size. */
function assertSkims<Reply>(
  skimmer: Skimmer<Reply>,
  { bytes, replies, reply }: { bytes: Buffer; replies: number; reply: Reply },
): void {
  for (let size = 1; size <= bytes.length; size++) {
    skimmer.expect(replies);
    for (let at = 0; at < bytes.length; at += size) {
      const isLast = at + size >= bytes.length;
      const got = skimmer.push(bytes.subarray(at, at + size));
      assert.deepEqual(got, isLast ? reply : null, `chunks of ${size} bytes, at byte ${at}`);
    }
  }
}

/** Asserts that a parser rejects these bytes with this message. */
function assertRefuses(skimmer: Skimmer<unknown>, bytes: Buffer, message: RegExp): void {
  skimmer.expect(1);
  assert.throws(() => skimmer.push(bytes), message);
}

const LONG = "x".repeat(100);

test("RespSkimmer finds the end of every kind of reply and the last entry, however the bytes are split", () => {
  const entry = (id: string, value: string) =>
    `*2\r\n$${id.length}\r\n${id}\r\n*2\r\n$1\r\ne\r\n$${value.length}\r\n${value}\r\n`;
  const others = `+OK\r\n:-1\r\n$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n$5\r\n-ERR\r\r\n`;
  const entries = `*2\r\n${entry("1-0", LONG)}${entry("1700000000000-12", "")}`;
  const reply = { entries: 2, lastId: "1700000000000-12" };
  assertSkims(new RespSkimmer(), { bytes: Buffer.from(others + entries), replies: 8, reply });
  assertRefuses(new RespSkimmer(), Buffer.from("*2\r\n+OK\r\n-OOM full\r\n"), /Redis: OOM full$/);
});

/** Formats a message as the PostgreSQL server does. */
function pg(type: string, ...parts: (string | number[] | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  const head = Buffer.alloc(5);
  head.write(type, "latin1");
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

test("PgSkimmer finds the last row and the end of the rows, however the bytes are split", () => {
  const row = (id: bigint, rest: string) =>
    pg("D", [0, 2, 0, 0, 0, 8], int64(id), [0, 0, 0, rest.length], rest);
  const lastId = (5n << 32n) + 0xfffffffen;
  const messages = [pg("2"), row(1n, LONG), row(lastId, "Z"), pg("C", "SELECT 2\0"), pg("Z", "I")];
  const reply = { rows: 2, lastId, tag: "SELECT 2" };
  assertSkims(new PgSkimmer(), { bytes: Buffer.concat(messages), replies: 1, reply });
  const error = pg("E", "SERROR\0C42601\0Msyntax error\0\0");
  assertRefuses(new PgSkimmer(), error, /^Error: PostgreSQL: syntax error$/);
});

function series(
  who: Pick<Series, "row" | "subject" | "variant"> & { isSameWork?: boolean },
  ...rounds: Partial<Measurement>[]
): Series {
  const all = rounds.map((round) => ({ ...NOT_MEASURED, ...round }));
  return { isSameWork: false, ...who, rounds: all };
}

test("comparisonRows() compares medians with the best peer, the same work and the floor", () => {
  const rates = (...values: number[]) => values.map((eventsPerSecond) => ({ eventsPerSecond }));
  const [row, ...others] = comparisonRows([
    series({ row: "single-1", subject: "ours", variant: "node" }, ...rates(100, 900, 300)),
    series({ row: "single-1", subject: "Redis", variant: "slow" }, ...rates(150, 150, 150)),
    series({ row: "single-1", subject: "Redis", variant: "fast" }, ...rates(1, 600, 700)),
    series(
      { row: "single-1", subject: "PostgreSQL", variant: "INSERT", isSameWork: true },
      ...rates(200, 100, 300),
    ),
    series({ row: "single-1", subject: "floor", variant: "hash-store" }, ...rates(900, 1200, 1000)),
  ]);
  assert.deepEqual(others, []);
  const { ours, by, ...cells } = row!;
  assert.deepEqual([ours, cells["best peer"], by, cells["x best"]], [300, 600, "Redis fast", 0.5]);
  const same = [cells["same work"], cells["same by"], cells["x same"]];
  assert.deepEqual(same, [200, "PostgreSQL INSERT", 1.5]);
  assert.deepEqual([cells["floor"], cells["x floor"]], [1000, 0.3]);
});

test("comparisonRows() ranks lower latency as better, with separate rows for p50 and p99", () => {
  const rows = comparisonRows([
    series({ row: "deliver", subject: "ours", variant: "node" }, { p50Ms: 2, p99Ms: 3 }),
    series({ row: "deliver", subject: "Redis", variant: "XREAD" }, { p50Ms: 1, p99Ms: 12 }),
    series({ row: "deliver", subject: "PostgreSQL", variant: "LISTEN" }, { p50Ms: 4, p99Ms: 6 }),
  ]);
  const cells = rows.map((row) => [row["row"], row["unit"], row["by"], row["x best"]]);
  assert.deepEqual(cells, [
    ["deliver p50", "ms", "Redis XREAD", 0.5],
    ["deliver p99", "ms", "PostgreSQL LISTEN", 2],
  ]);
});

test("medianOf() returns the median of the measured values", () => {
  const medians = [[], [null, null], [10, null, 9, 100], [4, 1, 3, 100]].map((values) =>
    medianOf(values.map((p50Ms) => ({ ...NOT_MEASURED, p50Ms })), "p50Ms")
  );
  assert.deepEqual(medians, [null, null, 10, 3.5]);
});

test("parseRedisBenchmark() and parsePgbench() read the rate and latencies", () => {
  const redis = '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms",' +
    '"p95_latency_ms","p99_latency_ms","max_latency_ms"\n' +
    '"XADD events * e {"a":"b","c":"1"}","4347.83","0.221","0.144","0.175","0.247","1.167","3.4"\n';
  const report = { perSecond: 4347.83, p50Ms: 0.175, p99Ms: 1.167 };
  assert.deepEqual(parseRedisBenchmark(redis), report);
  assert.throws(() => parseRedisBenchmark("Could not connect\n"), /printed no rate/);
  const pgbench = "latency average = 0.2 ms\ntps = 4999.1 (without initial connection time)\n";
  assert.deepEqual(parsePgbench(pgbench), { perSecond: 4999.1, p50Ms: null, p99Ms: null });
  assert.throws(() => parsePgbench("pgbench: error\n"), /printed no rate/);
});
