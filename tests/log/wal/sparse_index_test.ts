import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { EVENT_BYTES_MIN, READ_CHUNK_BYTES } from "../../../src/limits.ts";
import {
  type Block,
  INDEX_INTERVAL_BYTES,
  recordKeyHash,
  SparseIndex,
} from "../../../src/log/wal/sparse_index.ts";
import { idAt } from "../../support/event_ids.ts";

/** A line of `sizeBytes` with the event id and the key for `number`. */
function line(number: number, sizeBytes: number): string {
  const names = `"source":"s","stream":"s","record_key":"key ${number}","kind":"`;
  return `{"event_id":"${idAt(number)}",${names}`.padEnd(sizeBytes - 1, "x") + "\n";
}

function keyHash(number: number): number {
  return recordKeyHash(Buffer.from(`key ${number}`));
}

interface IndexedFile {
  index: SparseIndex;
  bytes: Buffer;
  /** Start offset of each event line. */
  lineOffsets: number[];
}

/** Indexes commits with the given line counts; each line is `lineBytes` long. */
function indexed(commits: readonly number[], lineBytes: number): IndexedFile {
  const header = '{"commit":}\n';
  const index = new SparseIndex();
  const lineOffsets: number[] = [];
  let text = "";
  for (const lines of commits) {
    const start = text.length;
    text += header;
    for (let i = 0; i < lines; i++) {
      lineOffsets.push(text.length);
      text += line(lineOffsets.length - 1, lineBytes);
    }
    index.add(Buffer.from(text.slice(start)), header.length);
  }
  return { index, bytes: Buffer.from(text), lineOffsets };
}

/** Commits of short and long lines. An empty commit is a clean shutdown. */
const SHAPES: [commits: number[], lineBytes: number][] = [
  [[1000], 400],
  [Array(1000).fill(1), 400],
  [[1, 400, 1, 1, 800, 3, 0], 600],
  [[0, 20], INDEX_INTERVAL_BYTES],
  [[5, 0, 5], 3 * INDEX_INTERVAL_BYTES],
  [[1000], EVENT_BYTES_MIN],
];

test("blocks() returns whole lines with their CRC-32, even while the last block grows", () => {
  for (const [commits, lineBytes] of SHAPES) {
    for (let count = 1; count <= commits.length; count += Math.ceil(commits.length / 5)) {
      const { index, bytes, lineOffsets } = indexed(commits.slice(0, count), lineBytes);
      for (const position of [0, ...lineOffsets]) {
        for (const sizeBytes of [1, INDEX_INTERVAL_BYTES + 1, READ_CHUNK_BYTES]) {
          const blocks = index.blocks(position, sizeBytes);
          const { start, end } = blocks[0]!;
          assert.ok(start <= position && position < end);
          const readBytes = blocks.at(-1)!.end - start;
          assert.ok(blocks.length === 1 || readBytes <= READ_CHUNK_BYTES, `${readBytes} bytes`);
          for (const [place, block] of blocks.entries()) {
            assert.ok(block.start === 0 || lineOffsets.includes(block.start));
            assert.equal(block.start, blocks[place - 1]?.end ?? start);
            assert.equal(block.crc, crc32(bytes.subarray(block.start, block.end)));
          }
        }
      }
    }
  }
});

test("seekKey() skips blocks without the key, and never a block with it", () => {
  for (const [commits, lineBytes] of SHAPES) {
    const { index, bytes, lineOffsets } = indexed(commits, lineBytes);
    for (const [number, offset] of lineOffsets.entries()) {
      const [{ start }] = index.blocks(offset, 1) as [Block];
      for (const from of [0, start, offset]) {
        let position = index.seekKey(from, keyHash(number));
        while (position < start) {
          // False positive: the block does not contain the key.
          position = index.seekKey(index.blocks(position, 1)[0]!.end, keyHash(number));
        }
        assert.equal(position, Math.max(from, start), `event ${number} from ${from}`);
      }
    }
    const absent = Array.from({ length: 100 }, (_, place) => keyHash(lineOffsets.length + place));
    const passed = absent.filter((hash) => index.seekKey(0, hash) < bytes.length);
    assert.ok(
      passed.length <= 50,
      `${passed.length} of ${absent.length} absent keys pass a filter`,
    );
  }
});
