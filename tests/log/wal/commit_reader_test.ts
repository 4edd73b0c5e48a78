import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { type Commit, encodeCommit } from "../../../src/log/wal/commit_frame.ts";
import { CommitReader, readCommits } from "../../../src/log/wal/commit_reader.ts";
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

test("CommitReader returns commits of any size with their lines", async () => {
  const commits = [smallBatches(3), [HUGE], [], smallBatches(2000)];
  const { bytes, lines, entries } = await pendingFile(commits);
  const read = await readAll(bytes);
  assert.ok(read.lines.equals(lines));
  assert.deepEqual(read.bodies.map(({ length }) => length), read.commits.map((c) => c.bytes));
  assert.deepEqual(read.commits.flatMap(({ batches }) => batches), entries);
  assert.deepEqual([read.commits.length, read.endBytes, read.fault], [4, bytes.length, null]);
});

test("CommitReader stops at the first invalid commit and reports why", async () => {
  const { bytes } = await pendingFile([smallBatches(1), smallBatches(2), smallBatches(1)]);
  const [, second = 0] = commitOffsets(bytes);
  const body = bytes.indexOf("\n", second) + 1;
  const noLineEnd = Buffer.from('{"event_id":"');
  const commit = (await readAll(bytes)).commits[0]!;
  const cases: [label: string, bytes: Buffer, endBytes: number, fault: RegExp][] = [
    ["a changed event", flipBit(bytes, 8 * body + 100), second, /does not match its sha256/],
    ["a changed header", flipBit(bytes, 8 * second), second, /no commit header/],
    ["a changed sha256", flipBit(bytes, 8 * (body - 10)), second, /sha256|no commit header/],
    ["torn body", bytes.subarray(0, body + 10), second, /the commit ends at byte \d+, but/],
    ["torn header", bytes.subarray(0, second + 10), second, /no commit header/],
    ["one more byte", appendBytes(bytes, "\n"), bytes.length, /no commit header/],
    [
      "a body without a final LF",
      encodeCommit({ ...commit, bytes: noLineEnd.length }, [noLineEnd]),
      0,
      /does not match/,
    ],
    [
      "a body over the limit",
      encodeCommit({ ...commit, bytes: 2 ** 40 }, []),
      0,
      /no commit header/,
    ],
  ];
  for (const [label, changed, endBytes, fault] of cases) {
    const read = await readAll(changed);
    assert.equal(read.endBytes, endBytes, label);
    assert.match(read.fault ?? "", fault, label);
  }
});

test("CommitReader returns no part of an invalid commit", async () => {
  const { bytes, lines: right } = await pendingFile([smallBatches(2), smallBatches(1), []]);
  const changed = [
    truncateAt(bytes, 1),
    truncateAt(bytes, bytes.length - 1),
    appendBytes(bytes, "\n"),
  ];
  for (let bit = 0; bit < bytes.length * 8; bit += 37) changed.push(flipBit(bytes, bit));
  for (const other of changed) {
    const { fault, lines } = await readAll(other);
    assert.notEqual(fault, null);
    assert.ok(lines.equals(right.subarray(0, lines.length)));
  }
});

test("CommitReader reads headers longer than its read buffer", async () => {
  const long = (kind: string) =>
    Array.from({ length: 1000 }, (_, i) => preparedBatch(`${kind}${"ü".repeat(127)}${i}`));
  const { bytes, lines } = await pendingFile([long("a"), [HUGE], long("b")]);
  const read = await readAll(bytes);
  assert.deepEqual(read.commits.map(({ batches }) => batches.length), [1000, 1, 1000]);
  assert.ok(read.lines.equals(lines));
  assert.equal(read.fault, null);
});

test("readCommits() returns the commits with events and rejects any other bytes", async () => {
  const { bytes } = await pendingFile([smallBatches(2), [], smallBatches(1)]);
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
