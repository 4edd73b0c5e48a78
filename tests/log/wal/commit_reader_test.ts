import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { Commit } from "../../../src/log/wal/commit_frame.ts";
import { CommitReader, readCommits } from "../../../src/log/wal/commit_reader.ts";
import { scanCommits } from "../../../src/log/wal/commit_scan.ts";
import { CorruptLogError } from "../../../src/log/storage/errors.ts";
import { appendBytes, flipBit, truncateAt } from "../../support/corrupt.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { simulatedFile } from "../../support/simulated_disk.ts";
import { commitOffsets } from "../../support/test_log.ts";
import { pendingFile, smallBatches } from "../../support/test_segment.ts";

async function readAll(bytes: Uint8Array, startBytes = 0, sizeBytes = bytes.length) {
  const reader = new CommitReader(await simulatedFile(bytes), startBytes, sizeBytes);
  const commits: Commit[] = [];
  const bodies: Buffer[] = [];
  for (let next = await reader.next(); next !== null; next = await reader.next()) {
    commits.push(next.commit);
    bodies.push(Buffer.from(next.lines));
  }
  assert.equal(await reader.next(), null);
  const { endBytes, fault } = reader;
  return { commits, bodies, lines: Buffer.concat(bodies), endBytes, fault };
}

const HUGE = preparedBatch("huge", { events: [{ payload: "y".repeat(3_000_000) }] });

test("CommitReader gives every commit with its lines, whatever its size", async () => {
  const { bytes, lines, entries } = pendingFile([smallBatches(3), [HUGE], [], smallBatches(2000)]);
  const read = await readAll(bytes);
  assert.ok(read.lines.equals(lines));
  assert.deepEqual(read.bodies.map(({ length }) => length), read.commits.map((c) => c.bytes));
  assert.deepEqual(read.commits.flatMap(({ batches }) => batches), entries);
  assert.deepEqual([read.commits.length, read.endBytes, read.fault], [4, bytes.length, null]);
});

test("CommitReader begins and ends where it is told", async () => {
  const { bytes } = pendingFile([smallBatches(1), [HUGE], smallBatches(2)]);
  const [, second = 0, third = 0] = commitOffsets(bytes);
  const { commits, endBytes, fault } = await readAll(bytes, second, third);
  assert.deepEqual(commits.map(({ batches }) => batches[0]!.batch_id), ["huge"]);
  assert.deepEqual([endBytes, fault], [third, null]);
});

test("CommitReader stops at the commit that scanCommits() stops at, for the same reason", async () => {
  const { bytes, lines: right } = pendingFile([smallBatches(2), smallBatches(1), []]);
  const changed = [
    truncateAt(bytes, 1),
    truncateAt(bytes, bytes.length - 1),
    appendBytes(bytes, "\n"),
  ];
  for (let bit = 0; bit < bytes.length * 8; bit += 37) changed.push(flipBit(bytes, bit));
  for (const other of changed) {
    const { endBytes, fault, lines } = await readAll(other);
    const scanned = await scanCommits(await simulatedFile(other), other.length, { commit() {} });
    assert.deepEqual({ validBytes: endBytes, fault }, scanned);
    assert.notEqual(fault, null);
    assert.ok(lines.equals(right.subarray(0, lines.length)), "nothing of a commit that is wrong");
  }
});

test("readCommits() gives the commits with events and refuses what is no commit", async () => {
  const { bytes } = pendingFile([smallBatches(2), [], smallBatches(1)]);
  const read = async (file: Uint8Array) => {
    const counts: number[] = [];
    const storageFile = await simulatedFile(file);
    for await (const { commit } of readCommits(storageFile, 0, file.length, "pending/a")) {
      counts.push(commit.batches.length);
    }
    return counts;
  };
  assert.deepEqual(await read(bytes), [2, 1]);
  const cut = truncateAt(bytes, bytes.length - 1);
  const message = /^CorruptLogError: pending\/a: corrupt at byte \d+: the commit ends at/;
  await assert.rejects(read(cut), (error) => error instanceof CorruptLogError);
  await assert.rejects(read(cut), message);
});
