import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { GENESIS_HEAD_HEX, HistoryChain } from "../../../src/event/chain.ts";
import type { BatchEntry } from "../../../src/log/wal/commit_frame.ts";
import { CorruptLogError } from "../../../src/log/storage/errors.ts";
import { readBack } from "../../../src/log/sealing/segment_maker.ts";
import { openSegment } from "../../../src/log/segment/segment_reader.ts";
import { type CommitLines, writeSegment } from "../../../src/log/segment/segment_writer.ts";
import { flipBit } from "../../support/corrupt.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { failNth } from "../../support/storage_faults.ts";
import {
  pendingFile,
  readRowGroup,
  sealCommits,
  smallBatches,
  splitLines,
} from "../../support/test_segment.ts";

test("writeSegment() returns the manifest entry of the file", async () => {
  const { storage, segments, entries, lines, head } = await sealCommits([smallBatches(5000)]);
  const bytes = storage.contents("0.parquet");
  const chain = new HistoryChain();
  for (const line of splitLines(lines)) chain.append(JSON.parse(line.toString()).event_hash);
  assert.equal(chain.head, head);
  assert.deepEqual(segments, [{
    path: "0.parquet",
    sha256: createHash("sha256").update(bytes).digest("hex"),
    bytes: bytes.length,
    events: 5000,
    batches: 5000,
    first_event_id: entries[0]!.first_event_id,
    last_event_id: entries.at(-1)!.last_event_id,
    previous_head: GENESIS_HEAD_HEX,
    head,
  }]);
});

test("writeSegment() ends a segment with the first commit that reaches a limit", async () => {
  const sized = (batchId: string, events: number) =>
    preparedBatch(batchId, { events: Array(events).fill({}) });
  const [a, b, c, d, e] = [3, 8, 10, 1, 1].map((events, n) => sized(`${n}`, events));
  const commits = [[a!], [b!], [], [c!, d!], [e!]];
  const byEvents = await sealCommits(commits, { events: 10, bytes: 1e9 });
  assert.deepEqual(byEvents.segments.map(({ events }) => events), [11, 11, 1]);
  const lineBytes = byEvents.lines.length / 23;
  const byBytes = await sealCommits(commits, { events: 1e9, bytes: 4 * lineBytes });
  assert.deepEqual(byBytes.segments.map(({ batches }) => batches), [2, 2, 1]);
  for (const [before, after] of [[0, 1], [1, 2]] as const) {
    assert.equal(byEvents.segments[before]!.head, byEvents.segments[after]!.previous_head);
  }
});

test("writeSegment() retains no reference to the buffer that commits are read into", async () => {
  // Larger than one read, so every value overwrites the previous one in the buffer.
  const commits = Array.from({ length: 8 }, (_, number) => [
    preparedBatch(`${number}`, {
      source: `source-${number}`,
      events: [{
        stream: `stream-${number}`,
        kind: `kind-${number}`,
        payload: "x".repeat(1_500_000),
      }],
    }),
  ]);
  const { storage, lines } = await sealCommits(commits);
  const segment = await openSegment(storage, "0.parquet");
  const rowGroups = await segment.rowGroups();
  const read = await Promise.all(rowGroups.map((_, n) => readRowGroup(segment, n)));
  assert.ok(Buffer.concat(read).equals(lines));
});

test("writeSegment() creates no file if there are no events", async () => {
  const { storage, segments } = await sealCommits([[], []]);
  assert.deepEqual(segments, []);
  assert.equal((await storage.list("."))!.length, 1);
});

test("writeSegment() writes pages of several MiB at the right offsets", async () => {
  const noise = Buffer.alloc(3_000_000);
  for (let i = 0; i < noise.length; i++) noise[i] = 33 + (i * i * 2654435761 >>> 13) % 57;
  const payload = noise.toString("latin1");
  const { storage, lines } = await sealCommits([[
    preparedBatch("a", { events: [{ payload }, {}] }),
  ]]);
  const segment = await openSegment(storage, "0.parquet");
  assert.ok((await readRowGroup(segment, 0)).equals(lines));
});

async function writeCommits(commits: CommitLines[], previousHead = GENESIS_HEAD_HEX) {
  const storage = new SimulatedDisk();
  async function* iterate() {
    yield* commits;
  }
  const written = await writeSegment(storage, "0.parquet", iterate(), { previousHead });
  return { storage, written: written! };
}

/** A commit with two batches of two events each. */
async function twoBatches(): Promise<CommitLines> {
  const events = [{ recordKey: "x" }, { recordKey: "y" }];
  const batches = ["a", "b"].map((batchId) => preparedBatch(batchId, { events }));
  const { lines, entries, head } = await pendingFile([batches]);
  return { commit: { batches: entries, bytes: lines.length, head }, lines };
}

type Change = (commit: CommitLines) => CommitLines;

/** Changes the batch entries but not the lines. */
const entries =
  (change: (batches: BatchEntry[]) => BatchEntry[]): Change => ({ commit, lines }) => ({
    commit: { ...commit, batches: change(commit.batches) },
    lines,
  });

/** Changes the lines but not the batch entries. */
const relined = (change: (lines: Buffer[]) => Buffer[]): Change => ({ commit, lines }) => ({
  commit,
  lines: Buffer.concat(change(splitLines(lines))),
});

const edited = (from: string, to: string): Change => ({ commit, lines }) => {
  assert.ok(lines.includes(from), from);
  return { commit, lines: Buffer.from(lines.toString().replace(from, to)) };
};

const WRONG: [string, Change][] = [
  ["batches out of order", entries(([a, b]) => [b!, a!])],
  ["a batch that ends early", entries(([a, b]) => [{ ...a!, events: 1 }, b!])],
  ["a batch that ends late", entries(([a, b]) => [{ ...a!, events: 3 }, { ...b!, events: 1 }])],
  ["fewer lines than events", relined((lines) => lines.slice(0, -1))],
  ["more lines than events", relined((lines) => [...lines, Buffer.from("{}\n")])],
  ["lines of another batch", entries(([, b]) => [{ ...b!, events: 4 }])],
  ["a wrong last event", entries(([a, b]) => [a!, { ...b!, last_event_id: b!.first_event_id }])],
  ["lines out of order", relined(([first, second, ...rest]) => [second!, first!, ...rest])],
  ["lines of another source", edited('"shop"', '"show"')],
  ["a wrong chain head", ({ commit, lines }) => ({
    commit: { ...commit, head: "0".repeat(64) },
    lines,
  })],
  ["an unterminated line", ({ commit, lines }) => ({ commit, lines: lines.subarray(0, -1) })],
  ["a line that is not an event", edited('"kind"', '"kinds"')],
  ["an uppercase id", edited("-8203-", "-8A03-")],
  ["an uppercase hash", edited('"event_hash":"', '"event_hash":"A')],
  ["an invalid time", edited("01-01T00:00:00.000Z", "13-01T00:00:00.000Z")],
  ["an escape that is not canonical", edited('"x"', '"\\u0078"')],
  ["an escape in a name", edited('"orders"', '"\\u006frders"')],
];

test("writeSegment() rejects lines that do not match their batches", async () => {
  for (const [name, change] of WRONG) {
    await assert.rejects(writeCommits([change(await twoBatches())]), CorruptLogError, name);
  }
});

test("writeSegment() closes its file when a write fails", async () => {
  const storage = new SimulatedDisk();
  storage.hook = failNth("write", 1, { errno: "ENOSPC" });
  async function* iterate() {
    yield await twoBatches();
  }
  const written = writeSegment(storage, "0.parquet", iterate(), { previousHead: GENESIS_HEAD_HEX });
  await assert.rejects(written, { code: "ENOSPC" });
  assert.equal(storage.openFiles, 0);
});

test("readBack() accepts what was written and rejects any other content", async () => {
  const { storage, written } = await writeCommits([await twoBatches()]);
  await readBack(storage, "0.parquet", written);
  const damaged = new SimulatedDisk(
    new Map([["0.parquet", flipBit(storage.contents("0.parquet"), 1000)]]),
  );
  await assert.rejects(readBack(damaged, "0.parquet", written), { code: "file_hash_mismatch" });
  const others = { ...written, linesCrc: 0 };
  await assert.rejects(readBack(storage, "0.parquet", others), /lines read back differ/);
  assert.equal(storage.openFiles, 0);
});
