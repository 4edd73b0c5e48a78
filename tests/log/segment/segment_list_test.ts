import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";
import { LIST_BLOCK_BYTES, LIST_ENTRY_BYTES_MAX, NAME_BYTES_MAX } from "../../../src/limits.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import {
  blockCount,
  blockRange,
  decodeBlock,
  decodeFirstKey,
  findEntry,
  firstRange,
  ListBlock,
  type ListBlocks,
  type ListEntry,
  type ListName,
  seekEntry,
  streamKey,
} from "../../../src/log/segment/segment_list.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

const CHARACTERS = "abcxyz0189_.-";

function randomName(random: SeededRandom): string {
  const length = random.chance(0.05) ? NAME_BYTES_MAX : 1 + random.below(5);
  const first = random.pick([..."az09_"]);
  return first + Array.from({ length: length - 1 }, () => random.pick([...CHARACTERS])).join("");
}

function idAt(place: number): string {
  return `019b7c4e-2d37-7a01-8f00-${place.toString(16).padStart(12, "0")}`;
}

function randomStreams(random: SeededRandom, count: number) {
  const streams = new Map<string, { source: string; stream: string }>();
  while (streams.size < count) {
    const stream = { source: randomName(random), stream: randomName(random) };
    streams.set(streamKey(stream.source, stream.stream), stream);
  }
  return [...streams.entries()].sort(([a], [b]) => a < b ? -1 : 1).map(([, stream]) => ({
    ...stream,
    events: random.chance(0.1) ? Number.MAX_SAFE_INTEGER : 1 + random.below(999),
    last_event_id: idAt(random.below(1e9)),
  }));
}

/** A list as a segment has it: the text between the brackets, and how many blocks were read. */
function listOf(name: ListName, entries: unknown[]): ListBlocks & { reads: number } {
  const bytes = Buffer.from(canonicalize(entries).slice(1, -1));
  return {
    reads: 0,
    count: () => Promise.resolve(blockCount(bytes.length)),
    firstKey(number) {
      this.reads += 1;
      const { start, end } = firstRange(number, bytes.length);
      return Promise.resolve(decodeFirstKey(name, bytes.subarray(start, end)));
    },
    block(number) {
      this.reads += 1;
      const { start, end } = blockRange(number, bytes.length);
      return Promise.resolve(decodeBlock(name, bytes.subarray(start, end)));
    },
  };
}

async function readFrom(list: ListBlocks, key: string): Promise<ListEntry[]> {
  const entries: ListEntry[] = [];
  const cursor = await seekEntry(list, key);
  for (; cursor.current !== null; await cursor.next()) entries.push(cursor.current);
  return entries;
}

test(`a list of any length gives what a plain one does, from any key (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  for (const count of [1, 2, 20, 30, 60, 300, 1 + random.below(3000)]) {
    const streams = randomStreams(random, count);
    const plain = streams.map(({ source, stream, events, last_event_id }) => ({
      key: streamKey(source, stream),
      lastEventId: last_event_id,
      events,
    }));
    const list = listOf("streams", streams);
    assert.deepEqual(await readFrom(list, ""), plain);
    for (let run = 0; run < 40; run++) {
      const isThere = random.chance(0.5);
      const key = isThere
        ? random.pick(plain).key
        : streamKey(randomName(random), random.chance(0.2) ? "" : randomName(random));
      const expected = plain.filter((entry) => entry.key >= key);
      assert.deepEqual(await readFrom(list, key), expected, key);
      const found = expected[0]?.key === key ? expected[0] : null;
      list.reads = 0;
      assert.deepEqual(await findEntry(list, key), found, key);
      assert.ok(list.reads <= 3 + Math.log2(await list.count()), `${list.reads} reads`);
    }
  }
});

test(`entries that start or end at the border of a block are found (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  for (let shift = 0; shift < 120; shift++) {
    const first = { source: "a", last_event_id: idAt(1) };
    const rest = Array.from({ length: 60 }, (_, n) => ({
      source: `b${String(n).padStart(3, "0")}${"x".repeat(shift)}`,
      last_event_id: idAt(n),
    }));
    const list = listOf("sources", [first, ...rest]);
    const wanted = random.pick([first, ...rest]);
    assert.deepEqual(await findEntry(list, wanted.source), {
      key: wanted.source,
      lastEventId: wanted.last_event_id,
      events: 0,
    });
    assert.equal((await readFrom(list, "")).length, 61);
  }
});

test("the longest entry fits what a block is read with", () => {
  const longest = {
    events: Number.MAX_SAFE_INTEGER,
    last_event_id: idAt(0),
    source: "s".repeat(NAME_BYTES_MAX),
    stream: "t".repeat(NAME_BYTES_MAX),
  };
  assert.ok(`${canonicalize(longest)},`.length <= LIST_ENTRY_BYTES_MAX);
  assert.ok(LIST_ENTRY_BYTES_MAX < LIST_BLOCK_BYTES);
});

const ID = idAt(7);
function entry(source: string): string {
  return `{"last_event_id":"${ID}","source":"${source}"}`;
}

const MALFORMED: Record<string, string> = {
  "keys out of order": `${entry("b")},${entry("a")}`,
  "a key twice": `${entry("b")},${entry("b")}`,
  "members in another order": `{"source":"b","last_event_id":"${ID}"}`,
  "a name in capitals": entry("B"),
  "an end within an entry": entry("b").slice(0, -2),
  "something between entries": `${entry("a")} ,${entry("b")}`,
};
for (const [name, text] of Object.entries(MALFORMED)) {
  test(`decodeBlock() refuses ${name}`, () => {
    assert.throws(() => decodeBlock("sources", Buffer.from(text)), SegmentError);
  });
}

test("a list whose blocks are out of order, or empty, is refused when it is read on", async () => {
  const read = (key: string) => ({ key, lastEventId: ID, events: 0 });
  const blocks = [[read("c")], [read("b")], [], [read("d")]];
  const list = (numbers: number[]): ListBlocks => ({
    count: () => Promise.resolve(numbers.length),
    firstKey: (number) => Promise.resolve(blocks[numbers[number]!]![0]?.key ?? null),
    block: (number) => Promise.resolve(new ListBlock(blocks[numbers[number]!]!)),
  });
  await assert.rejects(readFrom(list([0, 1]), ""), SegmentError);
  await assert.rejects(readFrom(list([0, 2, 3]), ""), SegmentError);
  assert.equal((await readFrom(list([0, 3, 2]), "")).length, 2);
});
