import assert from "node:assert/strict";
import { test } from "node:test";
import {
  namesOf,
  StreamCounts,
  type StreamEntry,
  streamKey,
} from "../../../src/log/read/stream_counts.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { idAt } from "../../support/event_ids.ts";

function readFrom(counts: StreamCounts, key: string): StreamEntry[] {
  const blocks = [...counts.blocks(key)];
  assert.ok(blocks.every((block) => block.length > 0));
  return blocks.flat();
}

test(`StreamCounts agrees with a plain list, and its copies are independent (seed ${SEED})`, () => {
  const random = new SeededRandom();
  const names = ["a", "a-", "a-b", "a.", "a0", "a_", "aa", "0", "9", "_", "z"];
  for (let run = 0; run < 50; run++) {
    let counts = new StreamCounts();
    const plain = new Map<string, StreamEntry>();
    const copies: { copy: StreamCounts; entries: StreamEntry[] }[] = [];
    const inOrder = () =>
      structuredClone([...plain.values()]).sort((a, b) => a.key < b.key ? -1 : 1);
    for (let place = random.below(60); place > 0; place--) {
      const [source, stream] = [random.pick(names), random.pick(names)];
      const key = streamKey(source, stream);
      const events = 1 + random.below(3);
      const lastEventId = idAt(100 - place);
      counts.add(source, stream, events, lastEventId);
      plain.set(key, { key, events: events + (plain.get(key)?.events ?? 0), lastEventId });
      const from = streamKey(random.pick(names), random.pick(["", ...names]));
      if (random.chance(0.3)) {
        const expected = inOrder().filter((entry) => entry.key >= from);
        assert.deepEqual(readFrom(counts, from), expected);
      }
      if (random.chance(0.1)) {
        // Adding to a copy does not change the original.
        const both = [counts, counts.copy()];
        const [kept, grown] = random.chance(0.5) ? both : both.reverse();
        copies.push({ copy: kept!, entries: inOrder() });
        counts = grown!;
      }
    }
    assert.deepEqual([...counts.entries()], inOrder());
    for (const { key, lastEventId } of plain.values()) {
      assert.equal(counts.frontier(...namesOf(key)), lastEventId);
    }
    for (const { copy, entries } of copies) assert.deepEqual([...copy.entries()], entries);
  }
});
