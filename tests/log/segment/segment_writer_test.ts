import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { GENESIS_HEAD_HEX } from "../../../src/event/chain.ts";
import { CorruptLogError } from "../../../src/log/storage/errors.ts";
import { readBack } from "../../../src/log/sealing/segment_maker.ts";
import { type CommitLines, writeSegment } from "../../../src/log/segment/segment_writer.ts";
import { flipBit } from "../../support/corrupt.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { failNth } from "../../support/storage_faults.ts";
import { openSegment, pendingFile, readRowGroup, sealCommits } from "../../support/test_segment.ts";

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
  const segment = openSegment(storage, "0.parquet");
  const rowGroups = await segment.rowGroups();
  const read = await Promise.all(rowGroups.map((_, n) => readRowGroup(segment, n)));
  assert.ok(Buffer.concat(read).equals(lines));
});

test("writeSegment() writes pages of several MiB at the right offsets", async () => {
  const noise = Buffer.alloc(3_000_000);
  for (let i = 0; i < noise.length; i++) noise[i] = 33 + (i * i * 2654435761 >>> 13) % 57;
  const payload = noise.toString("latin1");
  const { storage, lines } = await sealCommits([[
    preparedBatch("a", { events: [{ payload }, {}] }),
  ]]);
  const segment = openSegment(storage, "0.parquet");
  assert.ok((await readRowGroup(segment, 0)).equals(lines));
});

async function write(commit: CommitLines, storage = new SimulatedDisk()) {
  async function* iterate() {
    yield commit;
  }
  const settings = { previousHead: GENESIS_HEAD_HEX };
  return { storage, written: await writeSegment(storage, "0.parquet", iterate(), settings) };
}

/** A commit with two batches of two events each. */
async function twoBatches(): Promise<CommitLines> {
  const events = [{ recordKey: "x" }, { recordKey: "y" }];
  const batches = ["a", "b"].map((batchId) => preparedBatch(batchId, { events }));
  const { lines, entries, head } = await pendingFile([batches]);
  return { commit: { batches: entries, bytes: lines.length, head }, lines };
}

type Change = (commit: CommitLines) => CommitLines;

const edited = (from: string, to: string): Change => ({ commit, lines }) => {
  assert.ok(lines.includes(from), from);
  return { commit, lines: Buffer.from(lines.toString().replace(from, to)) };
};

const WRONG: [string, Change][] = [
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
    await assert.rejects(write(change(await twoBatches())), CorruptLogError, name);
  }
});

test("writeSegment() closes its file when a write fails", async () => {
  const storage = new SimulatedDisk();
  storage.hook = failNth("write", 1, { errno: "ENOSPC" });
  await assert.rejects(write(await twoBatches(), storage), { code: "ENOSPC" });
  assert.equal(storage.openFiles, 0);
});

test("readBack() accepts what was written and rejects any other content", async () => {
  const { storage, written } = await write(await twoBatches());
  await readBack(storage, "0.parquet", written);
  const bytes = flipBit(storage.contents("0.parquet"), 1000);
  const damaged = new SimulatedDisk(new Map([["0.parquet", bytes]]));
  await assert.rejects(readBack(damaged, "0.parquet", written), { code: "file_hash_mismatch" });
  const others = { ...written, linesCrc: 0 };
  await assert.rejects(readBack(storage, "0.parquet", others), /lines read back differ/);
  assert.equal(storage.openFiles, 0);
});
