import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { StreamSummary } from "../../src/event/types.ts";
import { StreamCounts, streamKey, type StreamSource } from "../../src/log/read/stream_counts.ts";
import { mergeStreams } from "../../src/service/streams.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";
import { idAt } from "../support/event_ids.ts";

/** Names, including some that extend another name by each kind of valid character. */
const NAMES = [
  ...["a", "a-", "a-b", "a.", "a.b", "a0", "a_", "a_b", "aa", "ab"],
  ...["0", "9", "_", "_a", "z"],
];

function byBytes(a: StreamSummary, b: StreamSummary): number {
  return Buffer.compare(Buffer.from(a.source), Buffer.from(b.source)) ||
    Buffer.compare(Buffer.from(a.stream), Buffer.from(b.stream));
}

/** All streams, read in pages of `limit`. */
async function pagedRows(sources: StreamSource[], source: string | undefined, limit: number) {
  const rows: StreamSummary[] = [];
  for (let afterKey = "";;) {
    const page = await mergeStreams(sources, { afterKey, source, limit });
    assert.ok(page.length <= limit);
    rows.push(...page);
    if (page.length < limit) return rows;
    afterKey = streamKey(page.at(-1)!.source, page.at(-1)!.stream);
  }
}

test(`mergeStreams() sums the counts of all parts of a log, in pages (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  for (let run = 0; run < 50; run++) {
    const parts: StreamCounts[] = [];
    const rows = new Map<string, StreamSummary>();
    let place = 0;
    for (let part = random.below(5); part >= 0; part--) {
      const counts = new StreamCounts();
      for (let added = random.below(60); added > 0; added--) {
        const source = random.pick(NAMES);
        const stream = random.pick(NAMES);
        const key = streamKey(source, stream);
        const frontier_event_id = idAt(place++);
        counts.add(source, stream, 2, frontier_event_id);
        const event_count = 2 + (rows.get(key)?.event_count ?? 0);
        rows.set(key, { source, stream, frontier_event_id, event_count });
      }
      parts.push(counts);
    }
    const sorted = [...rows.values()].sort(byBytes);
    for (const source of [undefined, random.pick(NAMES), "a-c"]) {
      const wanted = sorted.filter((row) => source === undefined || row.source === source);
      assert.deepEqual(await pagedRows(parts, source, 1 + random.below(7)), wanted);
    }
  }
});

test("mergeStreams() lists parts of any number of streams", async () => {
  for (const count of [0, 1, 63, 64, 65, 127, 128, 129, 600]) {
    const [even, odd] = [new StreamCounts(), new StreamCounts()];
    const names = Array.from({ length: count }, (_, n) => String(1000 + n));
    for (const name of names) {
      even.add("even", name, 1, idAt(1));
      odd.add("odd", name, 1, idAt(1));
    }
    for (const limit of [10, 64, 2000]) {
      const rows = await pagedRows([even, odd], undefined, limit);
      const expected = ["even", "odd"].flatMap((source) =>
        names.map((name) => `${source} ${name}`)
      );
      assert.deepEqual(rows.map(({ source, stream }) => `${source} ${stream}`), expected);
    }
  }
});
