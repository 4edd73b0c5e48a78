import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { NAME_BYTES_MAX } from "../../../src/limits.ts";
import { type StreamEntry, streamKey } from "../../../src/log/read/stream_counts.ts";
import { SegmentError } from "../../../src/log/storage/segment_error.ts";
import {
  decodeStreamBlock,
  decodeStreamIndex,
  encodeStreamIndex,
  findEntry,
  isSourceKey,
  sourceKey,
  STREAM_BLOCK_BYTES_MAX,
  streamBlocks,
  type StreamIndex,
} from "../../../src/log/segment/stream_index.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { flipBit, truncateAt } from "../../support/corrupt.ts";
import { idAt } from "../../support/event_ids.ts";

const CHARACTERS = "abcxyz0189_.-";

function randomName(random: SeededRandom): string {
  const length = random.chance(0.05) ? NAME_BYTES_MAX : 1 + random.below(5);
  const first = random.pick([..."az09_"]);
  return first + Array.from({ length: length - 1 }, () => random.pick([...CHARACTERS])).join("");
}

/** Random entries for streams and their sources, in order. */
function randomEntries(random: SeededRandom, count: number): StreamEntry[] {
  const keys = new Set<string>();
  const sources = Array.from({ length: 1 + random.below(count) }, () => randomName(random));
  while (keys.size < 2 * count) {
    const source = random.pick(sources);
    keys.add(sourceKey(source)).add(streamKey(source, randomName(random)));
  }
  return [...keys].sort().map((key) => ({
    key,
    events: random.chance(0.1) ? 2 ** 32 - 1 : 1 + random.below(999),
    lastEventId: idAt(random.below(1e9)),
  }));
}

/** A stream index as stored in a segment. It counts the blocks read from it. */
function indexOf(entries: StreamEntry[]): StreamIndex & { reads: number } {
  const { stream_blocks: blocks, stream_index: index } = encodeStreamIndex(entries);
  return {
    reads: 0,
    readStreamIndex() {
      this.reads += 1;
      return Promise.resolve(decodeStreamIndex(index));
    },
    readStreamBlock(start, end) {
      this.reads += 1;
      assert.ok(end - start <= STREAM_BLOCK_BYTES_MAX);
      return Promise.resolve(decodeStreamBlock(blocks.subarray(start, end)));
    },
  };
}

async function readFrom(streams: StreamIndex, key: string): Promise<StreamEntry[]> {
  const blocks = await Array.fromAsync(streamBlocks(streams, key));
  assert.ok(blocks.every((block) => block.length > 0));
  return blocks.flat();
}

test(`a stream index of any length agrees with a plain list (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  for (const count of [1, 2, 20, 60, 300, 1 + random.below(3000)]) {
    const plain = randomEntries(random, count);
    const streams = indexOf(plain);
    const listed = plain.filter(({ key }) => !isSourceKey(key));
    assert.deepEqual(await readFrom(streams, ""), listed);
    for (let run = 0; run < 40; run++) {
      const key = random.chance(0.5)
        ? random.pick(plain).key
        : streamKey(randomName(random), random.chance(0.2) ? "" : randomName(random));
      assert.deepEqual(await readFrom(streams, key), listed.filter((entry) => entry.key >= key));
      streams.reads = 0;
      const found = plain.find((entry) => entry.key === key) ?? null;
      assert.deepEqual(await findEntry(streams, key), found, key);
      assert.ok(streams.reads <= 2);
    }
  }
});

test("a source sorts before its streams, and a stream before streams that begin with its name", () => {
  const keys = [
    sourceKey("a"),
    streamKey("a", "b"),
    streamKey("a", "b-"),
    streamKey("a", "ba"),
    sourceKey("a-"),
    streamKey("a-", "b"),
    sourceKey("aa"),
  ];
  assert.deepEqual(keys.toSorted(), keys);
});

test("the CRC-32 of a block covers every bit", () => {
  const { stream_blocks: blocks, stream_index: index } = encodeStreamIndex(entriesOf(["b", "c"]));
  for (
    const [bytes, decode] of [[blocks, decodeStreamBlock], [index, decodeStreamIndex]] as const
  ) {
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      assert.throws(() => decode(flipBit(bytes, bit)), /does not match its CRC-32/);
    }
    for (let length = 0; length < bytes.length; length++) {
      assert.throws(() => decode(truncateAt(bytes, length)), SegmentError);
    }
  }
});

test("decodeStreamBlock() rejects forged entries with a valid CRC-32", () => {
  for (const streams of [["c", "b"], ["b", "b"]]) {
    const { stream_blocks } = encodeStreamIndex(entriesOf(streams));
    assert.throws(() => decodeStreamBlock(stream_blocks), /has entries that are not sorted/);
  }
  const texts = [
    "",
    "null",
    "{}",
    "[null]",
    '["a"]',
    '[["a",1]]',
    '[["a","1","x"]]',
    '[["a",1,"x",2]]',
  ];
  for (const text of texts) {
    const bytes = Buffer.from(`${text}....`);
    bytes.writeUInt32LE(crc32(text), text.length);
    assert.throws(() => decodeStreamBlock(bytes), /has a malformed entry|is not JSON/, text);
  }
});

test("a block of maximum-size entries is within the readers' limit", async () => {
  const longest = (letter: string) => letter.repeat(NAME_BYTES_MAX);
  const entries = [..."abcdefghijklmnopqrstuvwxyz"].flatMap((letter) =>
    [..."klmno"].map((stream) => ({
      key: streamKey(longest(letter), longest(stream)),
      events: 2 ** 32,
      lastEventId: idAt(2 ** 40),
    }))
  );
  assert.deepEqual(await readFrom(indexOf(entries), ""), entries);
});

function entriesOf(streams: string[]): StreamEntry[] {
  return streams.map((stream, n) => ({
    key: streamKey("a", stream),
    events: n + 1,
    lastEventId: idAt(n),
  }));
}
