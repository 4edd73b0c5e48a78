import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { INDEX_INTERVAL_BYTES, SparseIndex } from "../../../src/log/wal/sparse_index.ts";
import { idAt } from "../../support/event_ids.ts";

/** A line of `sizeBytes` with the event id for `number`. */
function line(number: number, sizeBytes: number): string {
  return `{"event_id":"${idAt(number)}","x":"`.padEnd(sizeBytes - 1, "x") + "\n";
}

interface IndexedFile {
  index: SparseIndex;
  bytes: Buffer;
  /** Start offset of each event line. */
  lineOffsets: number[];
}

/** Indexes commits with these numbers of lines, each of `lineBytes`, `pieceLines` at a time. */
function indexed(commits: number[], lineBytes: number, pieceLines = Infinity): IndexedFile {
  const header = '{"commit":}\n';
  const index = new SparseIndex();
  const lineOffsets: number[] = [];
  let text = "";
  for (const lines of commits) {
    text += header;
    const bodyOffset = text.length;
    for (let i = 0; i < lines; i++) {
      lineOffsets.push(text.length);
      text += line(lineOffsets.length - 1, lineBytes);
    }
    for (let at = bodyOffset; at < text.length; at += pieceLines * lineBytes) {
      const pieceEnd = Math.min(text.length, at + pieceLines * lineBytes);
      index.addLines(Buffer.from(text.slice(at, pieceEnd)), at);
    }
  }
  return { index, bytes: Buffer.from(text), lineOffsets };
}

test("seek() returns offset 0 when the index is empty or has no earlier entry", () => {
  const index = new SparseIndex();
  assert.equal(index.seek(undefined), 0);
  assert.equal(index.seek(idAt(5)), 0);
  index.addLines(Buffer.from(line(7, 100)), 20);
  assert.equal(index.seek(undefined), 0);
  assert.equal(index.seek(idAt(6)), 0);
});

test("seek() returns the start of a line shortly before the first event after an id", () => {
  const shapes: [commits: number[], lineBytes: number, pieceLines: number][] = [
    [[4000], 100, Infinity],
    [[4000], 100, 10],
    [[4000], 100, 655],
    [Array(4000).fill(1), 100, Infinity],
    [[1, 1000, 1, 1, 2000, 3], 300, 14],
    [[20], INDEX_INTERVAL_BYTES, 1],
    [[5, 5], 3 * INDEX_INTERVAL_BYTES, 2],
    [[2000], 60, 1],
  ];
  for (const [commits, lineBytes, pieceLines] of shapes) {
    const { index, bytes, lineOffsets } = indexed(commits, lineBytes, pieceLines);
    const label = JSON.stringify([commits.length, lineBytes, pieceLines]);
    let marks = 0;
    let last = 0;
    for (let number = 0; number < lineOffsets.length; number++) {
      const offset = index.seek(idAt(number));
      const isLineStart = offset === 0 || bytes[offset - 1] === 0x0a;
      const next = lineOffsets[number + 1] ?? bytes.length;
      assert.ok(isLineStart && offset <= next, `${label}: seek ${number} gives ${offset}`);
      const slackBytes = next - offset;
      const allowedBytes = 2 * INDEX_INTERVAL_BYTES + 3 * lineBytes;
      assert.ok(slackBytes <= allowedBytes, `${label}: seek ${number} is ${slackBytes} early`);
      if (offset !== last) marks += 1;
      last = offset;
    }
    assert.ok(marks <= 1 + bytes.length / INDEX_INTERVAL_BYTES, `${label}: ${marks} marks`);
  }
});
