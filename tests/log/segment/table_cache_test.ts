import assert from "node:assert/strict";
import { test } from "node:test";
import { LruCache } from "../../../src/lru_cache.ts";
import { ScanMemory } from "../../../src/log/read/scan_memory.ts";
import { ListedSegment } from "../../../src/log/segment/listed_segment.ts";
import { RowGroupCache } from "../../../src/log/segment/row_group_cache.ts";
import type { StreamBlock, StreamIndexBlock } from "../../../src/log/segment/stream_index.ts";
import { TableCache } from "../../../src/log/segment/table_cache.ts";
import { SegmentView } from "../../../src/log/segment/segment_view.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { sealCommits } from "../../support/test_segment.ts";

const SEGMENTS = 5;
/** Fewer than there are. */
const OPEN_MAX = 2;

/** A segment for each key `key-0`, `key-1`, ... */
async function openViews() {
  const commits = Array.from(
    { length: SEGMENTS },
    (_, n) => [preparedBatch(`${n}`, { events: [{ stream: `s-${n}`, recordKey: `key-${n}` }] })],
  );
  const { storage, segments } = await sealCommits(commits, { events: 1, bytes: Infinity });
  assert.equal(segments.length, SEGMENTS);
  const disk = new SimulatedDisk(storage.tree());
  const tables = new TableCache(disk, OPEN_MAX);
  const blocks = new LruCache<StreamBlock | StreamIndexBlock>(1);
  const rowGroups = new RowGroupCache();
  const views = segments.map((segment) => {
    const entry = { ...segment, sealed_at: "2026-01-01T00:00:00.000Z" };
    return new SegmentView(new ListedSegment(entry, tables, blocks), rowGroups);
  });
  return { disk, tables, views };
}

for (
  const [column, filterOf] of Object.entries({
    "record key": (n: number) => ({ recordKey: `key-${n}` }),
    "stream": (n: number) => ({ stream: `s-${n}` }),
  })
) {
  test(`TableCache prunes closed segments by a ${column} in memory`, async () => {
    const { disk, tables, views } = await openViews();
    const readAll = async (n: number) => {
      let lines = "";
      for (const view of views) {
        const memory = new ScanMemory();
        const wanted = { after: undefined, filter: filterOf(n), firstReadBytes: 1000, memory };
        const source = view.lines(wanted);
        for (let chunk; (chunk = await source.next()) !== null;) lines += chunk;
      }
      return lines;
    };
    assert.match(await readAll(0), /^[^\n]*"record_key":"key-0"[^\n]*\n$/);
    assert.ok(disk.openFiles <= OPEN_MAX);
    const opens = () => disk.operations.filter(({ kind }) => kind === "open").length;
    for (let n = 1; n < SEGMENTS; n++) {
      const before = opens();
      assert.match(await readAll(n), new RegExp(`^[^\n]*"record_key":"key-${n}"[^\n]*\n$`));
      assert.ok(opens() - before <= 1, "no more than the one that has it");
    }
    assert.equal(await readAll(SEGMENTS), "");
    await tables.close();
    assert.equal(disk.openFiles, 0);
  });
}
