import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { INDEX_INTERVAL_BYTES, SparseIndex } from "../../../src/log/wal/sparse_index.ts";

/** A line of `sizeBytes` with the id of that number. */
function line(number: number, sizeBytes: number): string {
  return `{"event_id":"${eventId(number)}","x":"`.padEnd(sizeBytes - 1, "x") + "\n";
}

function eventId(number: number): string {
  return `019b76da-a800-7000-8000-${String(number).padStart(12, "0")}`;
}

interface IndexedFile {
  index: SparseIndex;
  bytes: Buffer;
  /** Where the line of each event starts. */
  lineOffsets: number[];
}

/** Indexes commits of so many lines, each of `lineBytes`, told in pieces of `pieceBytes`. */
function indexed(commits: number[], lineBytes: number, pieceBytes = Infinity): IndexedFile {
  const header = '{"commit":}\n';
  const index = new SparseIndex();
  const lineOffsets: number[] = [];
  let text = "";
  for (const lines of commits) {
    const commitOffset = text.length;
    const first = lineOffsets.length;
    text += header;
    const bodyOffset = text.length;
    for (let i = 0; i < lines; i++) {
      lineOffsets.push(text.length);
      text += line(lineOffsets.length - 1, lineBytes);
    }
    for (let at = bodyOffset; at < text.length; at += pieceBytes) {
      const pieceEnd = Math.min(text.length, at + pieceBytes);
      index.stageLines(Buffer.from(text.slice(at, pieceEnd)), at);
    }
    index.addCommit(commitOffset, eventId(first));
  }
  return { index, bytes: Buffer.from(text), lineOffsets };
}

test("seek() starts at the first byte when the index is empty or nothing comes before", () => {
  const index = new SparseIndex();
  assert.equal(index.seek(undefined), 0);
  assert.equal(index.seek(eventId(5)), 0);
  index.addCommit(0, eventId(7));
  assert.equal(index.seek(undefined), 0);
  assert.equal(index.seek(eventId(6)), 0);
});

test("seek() gives a line start shortly before the first event after an id", () => {
  const shapes: [commits: number[], lineBytes: number, pieceBytes: number][] = [
    [[4000], 100, Infinity],
    [[4000], 100, 1000],
    [[4000], 100, 65_537],
    [Array(4000).fill(1), 100, Infinity],
    [[1, 1000, 1, 1, 2000, 3], 300, 4096],
    [[20], INDEX_INTERVAL_BYTES, 10_000],
    [[5, 5], 3 * INDEX_INTERVAL_BYTES, 100_000],
    [[2000], 60, 7],
  ];
  for (const [commits, lineBytes, pieceBytes] of shapes) {
    const { index, bytes, lineOffsets } = indexed(commits, lineBytes, pieceBytes);
    const label = JSON.stringify([commits.length, lineBytes, pieceBytes]);
    let marks = 0;
    let last = 0;
    for (let number = 0; number < lineOffsets.length; number++) {
      const offset = index.seek(eventId(number));
      const isLineStart = offset === 0 || bytes[offset - 1] === 0x0a;
      const next = lineOffsets[number + 1] ?? bytes.length;
      assert.ok(isLineStart && offset <= next, `${label}: seek ${number} gives ${offset}`);
      const slackBytes = next - offset;
      const allowedBytes = 2 * INDEX_INTERVAL_BYTES + 3 * lineBytes;
      assert.ok(slackBytes <= allowedBytes, `${label}: seek ${number} is ${slackBytes} early`);
      if (offset !== last) marks += 1;
      last = offset;
    }
    assert.ok(marks <= bytes.length / INDEX_INTERVAL_BYTES, `${label}: ${marks} marks`);
  }
});

test("discardStaged() forgets the lines of a commit that is none", () => {
  const index = new SparseIndex();
  index.addCommit(0, eventId(1));
  const body = Buffer.from(line(2, 100).repeat(INDEX_INTERVAL_BYTES / 50));
  index.stageLines(body, 100);
  index.discardStaged();
  assert.equal(index.seek(eventId(9)), 0);
  index.addCommit(INDEX_INTERVAL_BYTES * 3, eventId(8));
  assert.equal(index.seek(eventId(9)), INDEX_INTERVAL_BYTES * 3);
});
