import assert from "node:assert/strict";
import { test } from "node:test";
import { BLOCK_ENTRIES } from "../../../src/log/read/key_table.ts";
import {
  namesOf,
  StreamCounts,
  type StreamEntry,
  streamKey,
  type StreamSource,
} from "../../../src/log/read/stream_counts.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { idAt } from "../../support/event_ids.ts";

async function readFrom(source: StreamSource, key: string): Promise<StreamEntry[]> {
  const entries: StreamEntry[] = [];
  const blocks = source.blocks(key);
  for (let next = await blocks.next(); next.done !== true; next = await blocks.next()) {
    assert.ok(next.value.length > 0);
    entries.push(...next.value);
  }
  return entries;
}

/** Whether a run fills more than one block of streams, and the names it takes them from. */
const RUNS: [name: string, added: number, names: number][] = [
  ["few streams", 60, 11],
  ["several blocks of streams", 3 * BLOCK_ENTRIES, 10_000],
];

for (const [name, addedMax, namesMax] of RUNS) {
  test(`StreamCounts lists ${name} as they were at each snapshot (seed ${SEED})`, async () => {
    const random = new SeededRandom();
    const ends = ["a", "a-", "a-b", "a.", "a0", "a_", "aa", "0", "9", "_", "z"];
    const nameOf = (number: number) =>
      number < ends.length ? ends[number]! : `${random.pick(ends)}${number}`;
    const streams = Array.from({ length: namesMax }, (_, number) => nameOf(number));
    for (let run = 0; run < (addedMax < BLOCK_ENTRIES ? 50 : 2); run++) {
      const counts = new StreamCounts();
      const plain = new Map<string, StreamEntry>();
      const snapshots: { source: StreamSource; entries: StreamEntry[] }[] = [];
      const inOrder = () =>
        structuredClone([...plain.values()]).sort((a, b) => a.key < b.key ? -1 : 1);
      const snapshotsPerAdd = 6 / addedMax;
      for (let place = addedMax - random.below(addedMax / 2); place > 0; place--) {
        const [source, stream] = [random.pick(ends), random.pick(streams)];
        const key = streamKey(source, stream);
        const events = 1 + random.below(3);
        const lastEventId = idAt(1 + addedMax - place);
        assert.ok(counts.add(source, stream, events, lastEventId));
        plain.set(key, { key, events: events + (plain.get(key)?.events ?? 0), lastEventId });
        if (!random.chance(snapshotsPerAdd)) continue;
        snapshots.push({ source: counts.snapshot(), entries: inOrder() });
        const from = streamKey(random.pick(ends), random.pick(["", ...streams]));
        for (const { source, entries } of snapshots) {
          const expected = entries.filter(({ key }) => key >= from);
          assert.deepEqual(await readFrom(source, from), expected);
        }
      }
      assert.deepEqual(await readFrom(counts.snapshot(), ""), inOrder());
      for (const { key, lastEventId } of plain.values()) {
        assert.equal(counts.frontier(...namesOf(key)), lastEventId);
      }
      for (const { source, entries } of snapshots) {
        assert.deepEqual(await readFrom(source, ""), entries);
      }
    }
  });
}

test("StreamCounts keeps the latest event of a stream whose events are added out of order", async () => {
  const counts = new StreamCounts();
  assert.ok(counts.add("a", "b", 1, idAt(2)));
  assert.ok(!counts.add("a", "b", 2, idAt(1)));
  assert.ok(!counts.add("a", "b", 1, idAt(2)));
  assert.deepEqual(await readFrom(counts.snapshot(), ""), [
    { key: "a b", events: 4, lastEventId: idAt(2) },
  ]);
});

test("StreamCounts lists a snapshot while streams are being added", async () => {
  const counts = new StreamCounts();
  const add = (number: number) => counts.add("a", `${BLOCK_ENTRIES + number}`, 1, idAt(1 + number));
  for (let number = 0; number < BLOCK_ENTRIES + 10; number += 2) add(number);
  const expected = await readFrom(counts.snapshot(), "");
  const blocks = counts.snapshot().blocks("");
  const listed: StreamEntry[] = [];
  let added = 0;
  for (let next = await blocks.next(); next.done !== true; next = await blocks.next()) {
    listed.push(...next.value);
    for (let more = 0; more < 64; more++, added++) {
      add(added % 2 === 0 ? added : 2 * BLOCK_ENTRIES + added);
    }
  }
  assert.deepEqual(listed, expected);
});
