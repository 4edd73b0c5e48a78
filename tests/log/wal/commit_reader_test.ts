import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { type Commit, encodeCommit } from "../../../src/log/wal/commit_frame.ts";
import { CommitReader } from "../../../src/log/wal/commit_reader.ts";
import { appendBytes, flipBit } from "../../support/corrupt.ts";
import { simulatedFile } from "../../support/simulated_disk.ts";
import { commitOffsets } from "../../support/test_log.ts";
import { pendingFile, smallBatches } from "../../support/test_segment.ts";

async function readAll(bytes: Uint8Array) {
  const reader = new CommitReader(await simulatedFile(bytes), 0, bytes.length);
  const commits: Commit[] = [];
  for (let next = await reader.next(); next !== null; next = await reader.next()) {
    commits.push(next.commit);
  }
  assert.equal(await reader.next(), null);
  const { endBytes, fault } = reader;
  return { commits, endBytes, fault };
}

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
