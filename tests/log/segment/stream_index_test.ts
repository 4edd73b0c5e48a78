import assert from "node:assert/strict";
import type { Buffer } from "node:buffer";
import { test } from "node:test";
import { NAME_BYTES_MAX } from "../../../src/limits.ts";
import { type StreamEntry, streamKey } from "../../../src/log/read/stream_counts.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import {
  isSourceKey,
  sourceKey,
  STREAM_BLOCK_BYTES_MAX,
  StreamBlock,
  StreamIndexBlock,
  streamIndexBlocks,
} from "../../../src/log/segment/stream_index.ts";
import {
  findEntry,
  seekStream,
  type StreamIndex,
} from "../../../src/log/segment/stream_index_reader.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { flipBit, truncateAt } from "../../support/corrupt.ts";

const CHARACTERS = "abcxyz0189_.-";

function randomName(random: SeededRandom): string {
  const length = random.chance(0.05) ? NAME_BYTES_MAX : 1 + random.below(5);
  const first = random.pick([..."az09_"]);
  return first + Array.from({ length: length - 1 }, () => random.pick([...CHARACTERS])).join("");
}

function idAt(place: number): string {
  return `019b7c4e-2d37-7a01-8f00-${place.toString(16).padStart(12, "0")}`;
}

/** So many streams and their sources, in order. */
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

/** An index as a segment has it, and how many blocks were read of it. */
function indexOf(entries: StreamEntry[]): StreamIndex & { reads: number } {
  const blocks = [...streamIndexBlocks(entries)];
  const table = blocks.slice(0, -1);
  const offsets = new Map<number, Buffer>();
  let offset = 0;
  for (const block of table) {
    offsets.set(offset, block);
    offset += block.length;
    assert.ok(block.length <= STREAM_BLOCK_BYTES_MAX);
  }
  return {
    reads: 0,
    index() {
      this.reads += 1;
      return Promise.resolve(new StreamIndexBlock(blocks.at(-1)!));
    },
    block(place) {
      this.reads += 1;
      const block = offsets.get(place.offset)!;
      assert.equal(block.length, place.bytes);
      return Promise.resolve(new StreamBlock(block));
    },
  };
}

async function readFrom(streams: StreamIndex, key: string): Promise<StreamEntry[]> {
  const entries: StreamEntry[] = [];
  const cursor = await seekStream(streams, key);
  while (cursor.key !== null) {
    entries.push({ key: cursor.key, events: cursor.events, lastEventId: cursor.lastEventId });
    if (!cursor.next()) await cursor.nextBlock();
  }
  return entries;
}

test(`a stream index of any length finds what a plain list does (seed ${SEED})`, async () => {
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
      assert.equal(streams.reads, 2);
    }
  }
});

test("a stream index without entries holds nothing", async () => {
  const streams = indexOf([]);
  assert.equal(await findEntry(streams, streamKey("a", "b")), null);
  assert.deepEqual(await readFrom(streams, ""), []);
});

test("a source comes before its streams, and a stream before one that begins with its name", () => {
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

test("every bit of a block is covered by its CRC-32", () => {
  const entries = ["b", "c"].map((stream, n) => ({
    key: streamKey("a", stream),
    events: n + 1,
    lastEventId: idAt(n),
  }));
  const [block, index] = [...streamIndexBlocks(entries)];
  for (const bytes of [block!, index!]) {
    const read = bytes === block ? StreamBlock : StreamIndexBlock;
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      assert.throws(() => new read(flipBit(bytes, bit)), /does not match its CRC-32/);
    }
    for (let length = 0; length < bytes.length; length++) {
      assert.throws(() => new read(truncateAt(bytes, length)), SegmentError);
    }
  }
  // A right CRC-32 around entries of another form.
  assert.throws(() => new StreamBlock(index!), /malformed entry/);
});
