import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { type Commit, encodeCommitHeader } from "../../../src/log/wal/commit_frame.ts";
import { scanCommits, type ScanResult } from "../../../src/log/wal/commit_scan.ts";
import { appendBytes, flipBit } from "../../support/corrupt.ts";
import { SimulatedDisk, simulatedFile } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { commitOffsets, logTree, openTestLog, tailOf } from "../../support/test_log.ts";

interface Scanned extends ScanResult {
  commits: { commit: Commit; offset: number; endOffset: number }[];
  /** The event lines told before each commit. */
  bodies: string[];
}

async function scan(bytes: Uint8Array, sizeBytes = bytes.length): Promise<Scanned> {
  const commits: Scanned["commits"] = [];
  const bodies: string[] = [];
  let body = "";
  const result = await scanCommits(await simulatedFile(bytes), sizeBytes, {
    lines: (piece, offset) => {
      assert.ok(Buffer.from(piece).equals(bytes.subarray(offset, offset + piece.length)));
      body += Buffer.from(piece).toString();
    },
    commit: (commit, offset, endOffset) => {
      commits.push({ commit, offset, endOffset });
      bodies.push(body);
      body = "";
    },
  });
  return { ...result, commits, bodies };
}

test("scanCommits() visits every commit with its place and its lines", async () => {
  const tail = tailOf(await logTree([["a"], ["b", "c"], [], ["d"]]));
  const offsets = commitOffsets(tail);
  const { commits, bodies, validBytes, fault } = await scan(tail);
  assert.deepEqual(
    commits.map(({ commit }) => commit.batches.map((batch) => batch.batch_id)),
    [["a"], ["b", "c"], [], ["d"]],
  );
  assert.deepEqual([...commits.map(({ offset }) => offset), tail.length], offsets);
  assert.deepEqual(commits.map(({ endOffset }) => endOffset), offsets.slice(1));
  assert.deepEqual(bodies.map((body) => body.split("\n").length - 1), [1, 2, 0, 1]);
  assert.deepEqual([validBytes, fault], [tail.length, null]);
});

test("scanCommits() reads an empty file as no commits", async () => {
  assert.deepEqual(await scan(Buffer.alloc(0)), {
    commits: [],
    bodies: [],
    validBytes: 0,
    fault: null,
  });
});

test("scanCommits() stops at the first commit that is not right, and says why", async () => {
  const tail = tailOf(await logTree([["a"], ["b"], ["c"]]));
  const [, second = 0, third = 0] = commitOffsets(tail);
  const body = tail.indexOf("\n", second) + 1;
  const noLineEnd = Buffer.from('{"event_id":"');
  const { commit } = (await scan(tail)).commits[0]!;
  const cases: [label: string, bytes: Buffer, validBytes: number, fault: RegExp][] = [
    ["a changed event", flipBit(tail, 8 * body + 100), second, /does not match its sha256/],
    ["a changed header", flipBit(tail, 8 * second), second, /no commit header/],
    ["a changed sha256", flipBit(tail, 8 * (body - 10)), second, /sha256|no commit header/],
    ["a cut body", tail.subarray(0, body + 10), second, /the commit ends at \d+, the file at \d+/],
    ["a cut header", tail.subarray(0, second + 10), second, /no commit header/],
    ["more behind", appendBytes(tail, "\n"), tail.length, /no commit header/],
    [
      "a body that ends in no line end",
      Buffer.concat([
        encodeCommitHeader({ ...commit, bytes: noLineEnd.length }, [noLineEnd]),
        noLineEnd,
      ]),
      0,
      /does not match/,
    ],
    [
      "a body over the bound",
      encodeCommitHeader({ ...commit, bytes: 2 ** 40 }, []),
      0,
      /no commit header/,
    ],
  ];
  for (const [label, bytes, validBytes, fault] of cases) {
    const scanned = await scan(bytes);
    assert.equal(scanned.validBytes, validBytes, label);
    assert.match(scanned.fault ?? "", fault, label);
    assert.equal(scanned.commits.at(-1)?.endOffset ?? 0, validBytes, label);
  }
  const shorter = await scan(tail, third);
  assert.deepEqual([shorter.validBytes, shorter.fault], [third, null], "the size given is the end");
});

test("scanCommits() reads headers and bodies longer than any of its reads", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const longId = "ü".repeat(128);
  const many = Array.from({ length: 1000 }, (_, i) => preparedBatch(`${longId}${i}`));
  await log.append(many);
  await log.append([preparedBatch("a", { events: [{ payload: "x".repeat(2_500_000) }] })]);
  await log.append(many.map((batch) => ({ ...batch, source: "other" })));
  const tail = tailOf(storage.tree());
  const { commits, bodies, fault } = await scan(tail);
  assert.deepEqual(commits.map(({ commit }) => commit.batches.length), [1000, 1, 1000]);
  assert.deepEqual(
    bodies.map((body) => Buffer.byteLength(body)),
    commits.map(({ commit }) => commit.bytes),
  );
  assert.equal(fault, null);
});
