import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { GENESIS_HEAD_HEX, HistoryChain } from "../../src/event/chain.ts";
import { ROW_GROUP_BYTES_SOFT_MAX } from "../../src/limits.ts";
import type { BatchPiece } from "../../src/log/batch_pieces.ts";
import { CorruptLogError } from "../../src/log/log_error.ts";
import { readBack } from "../../src/log/segment_read_back.ts";
import { openSegment } from "../../src/log/segment_reader.ts";
import { writeSegment } from "../../src/log/segment_writer.ts";
import { flipBit } from "../support/corrupt.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { preparedBatch } from "../support/prepared.ts";
import { failNth } from "../support/storage_faults.ts";
import { pendingFile, sealCommits, smallBatches, splitLines } from "../support/test_segment.ts";

test("writeSegment() tells the facts of the file", async () => {
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

test("writeSegment() makes the same bytes of the same events", async () => {
  const commits = [smallBatches(100)];
  const [first, second] = [await sealCommits(commits), await sealCommits(commits)];
  assert.equal(first.segments[0]!.sha256, second.segments[0]!.sha256);
});

test("writeSegment() ends a segment with the first commit that reaches a bound", async () => {
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

test("writeSegment() makes no file when there are no events", async () => {
  const { storage, segments } = await sealCommits([[], []]);
  assert.deepEqual(segments, []);
  assert.equal((await storage.list("."))!.length, 1);
});

test("writeSegment() syncs the file before it tells of it", async () => {
  const { storage } = await sealCommits([smallBatches(10)]);
  const kinds = storage.operations.filter(({ path }) => path === "0.parquet").map((op) => op.kind);
  assert.deepEqual(kinds.slice(kinds.indexOf("sync")).slice(0, 2), ["sync", "close"]);
});

test("writeSegment() holds one row group at a time", async () => {
  const events = Array(40).fill({ payload: "x".repeat(ROW_GROUP_BYTES_SOFT_MAX / 8) });
  const { storage } = await sealCommits([[preparedBatch("a", { events })]]);
  const { rowGroups } = await openSegment(storage, "0.parquet");
  const writes = storage.operations.filter((op) => op.kind === "write" && op.path === "0.parquet");
  assert.ok(rowGroups.length >= 5);
  assert.ok(writes.length > rowGroups.length, "each row group is written by itself");
});

test("writeSegment() keeps pages too large to copy in their place", async () => {
  const noise = Buffer.alloc(3_000_000);
  for (let i = 0; i < noise.length; i++) noise[i] = 33 + (i * i * 2654435761 >>> 13) % 57;
  const payload = noise.toString("latin1");
  const { storage, lines } = await sealCommits([[
    preparedBatch("a", { events: [{ payload }, {}] }),
  ]]);
  const segment = await openSegment(storage, "0.parquet");
  assert.ok((await segment.readRowGroup(0)).equals(lines));
});

async function writePieces(pieces: BatchPiece[], previousHead = GENESIS_HEAD_HEX) {
  const storage = new SimulatedDisk();
  async function* iterate() {
    yield* pieces;
  }
  const written = await writeSegment(storage, "0.parquet", iterate(), { previousHead });
  return { storage, written: written! };
}

/** Two batches of two events, as pieces, with the head after the last. */
function twoBatches(): { pieces: BatchPiece[]; head: string } {
  const events = [{ recordKey: "x" }, { recordKey: "y" }];
  const batches = ["a", "b"].map((batchId) => preparedBatch(batchId, { events }));
  const { lines, entries, head } = pendingFile([batches]);
  const split = splitLines(lines);
  const pieces = entries.map((entry, n) => ({
    entry,
    lines: Buffer.concat(split.slice(2 * n, 2 * n + 2)),
  }));
  return { pieces, head };
}

test("writeSegment() takes a batch in pieces and checks the heads that it is told", async () => {
  const { pieces: [a, b], head } = twoBatches();
  const [first, second] = splitLines(b!.lines);
  const { written } = await writePieces([
    a!,
    { entry: b!.entry, lines: first! },
    { entry: b!.entry, lines: second!, head },
  ]);
  assert.equal(written.facts.head, head);
});

const edit = (piece: BatchPiece, from: string, to: string): BatchPiece => ({
  ...piece,
  lines: Buffer.from(piece.lines.toString().replace(from, to)),
});

const WRONG: [string, (a: BatchPiece, b: BatchPiece) => BatchPiece[]][] = [
  ["batches in another order", (a, b) => [b, a]],
  ["a batch that ends early", (a, b) => [{ ...a, lines: splitLines(a.lines)[0]! }, b]],
  ["a batch that goes on", (a, b) => [{ ...a, lines: Buffer.concat([a.lines, b.lines]) }]],
  ["lines of another batch", (a, b) => [{ entry: b.entry, lines: a.lines }]],
  ["lines of another source", (a, b) => [edit(a, '"shop"', '"show"'), b]],
  ["another chain head", (a, b) => [a, { ...b, head: "0".repeat(64) }]],
  ["a line that does not end", (a, b) => [a, { ...b, lines: b.lines.subarray(0, -1) }]],
  ["a line that is no event", (a, b) => [edit(a, '"kind"', '"kinds"'), b]],
  ["an id in capitals", (a, b) => [a, edit(b, "-8203-", "-8A03-")]],
  ["a hash in capitals", (a, b) => [edit(a, '"event_hash":"', '"event_hash":"A'), b]],
  ["a time that is none", (a, b) => [edit(a, "01-01T00:00:00.000Z", "13-01T00:00:00.000Z"), b]],
  ["an escape that is not canonical", (a, b) => [edit(a, '"x"', '"\\u0078"'), b]],
  ["an escape in a name", (a, b) => [edit(a, '"orders"', '"\\u006frders"'), b]],
];

test("writeSegment() refuses lines that are not what their batches say", async () => {
  const { pieces: [a, b] } = twoBatches();
  for (const [name, change] of WRONG) {
    await assert.rejects(writePieces(change(a!, b!)), CorruptLogError, name);
  }
});

test("writeSegment() closes its file when a write fails", async () => {
  const { pieces } = twoBatches();
  const storage = new SimulatedDisk();
  storage.hook = failNth("write", 1, { errno: "ENOSPC" });
  async function* iterate() {
    yield* pieces;
  }
  const written = writeSegment(storage, "0.parquet", iterate(), { previousHead: GENESIS_HEAD_HEX });
  await assert.rejects(written, { code: "ENOSPC" });
  assert.equal(storage.openFiles, 0);
});

test("readBack() passes what was written and refuses what came to be otherwise", async () => {
  const { pieces } = twoBatches();
  const { storage, written } = await writePieces(pieces);
  await readBack(storage, "0.parquet", written);
  const damaged = new SimulatedDisk(
    new Map([["0.parquet", flipBit(storage.contents("0.parquet"), 1000)]]),
  );
  await assert.rejects(readBack(damaged, "0.parquet", written), { code: "file_hash_mismatch" });
  const others = { ...written, linesSha256: "0".repeat(64) };
  await assert.rejects(readBack(storage, "0.parquet", others), /other lines/);
  assert.equal(storage.openFiles, 0);
});
