import assert from "node:assert/strict";
import { test } from "node:test";
import { flipBit } from "../../support/corrupt.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { historyOf, openSegment, sealCommits, smallBatches } from "../../support/test_segment.ts";

test("SealedHistory finds batches despite a damaged index, and reports the damage once", async () => {
  const commits = ["a", "b", "c"].map((source) => smallBatches(2, source));
  const { storage, segments, entries } = await sealCommits(commits, { events: 1, bytes: Infinity });
  const segment = openSegment(storage, "0.parquet");
  const { index: { start, end } } = await segment.footer();
  const { identitiesStart, filterStart } = await segment.index.open();
  const inFilter = start + filterStart + 9;
  for (const place of [start + identitiesStart + 9, inFilter, end - 9]) {
    const bytes = flipBit(storage.contents("0.parquet"), 8 * place);
    const damaged = new SimulatedDisk(new Map(storage.tree()).set("0.parquet", bytes));
    for (const filtersBytesMax of [0, Infinity]) {
      const reports: string[] = [];
      const report = (line: string) => void reports.push(line);
      const history = historyOf(damaged, segments, { filtersBytesMax, report });
      for (const entry of entries) {
        assert.deepEqual(await history.findBatch(entry.source, entry.batch_id), entry);
      }
      assert.equal(await history.findBatch("a", "new"), null);
      const isRead = place !== inFilter || filtersBytesMax > 0;
      assert.equal(reports.length, isRead ? 1 : 0, JSON.stringify(reports));
      assert.ok(reports.every((line) => /^0\.parquet: .*lookups read the rows/.test(line)));
      await history.close();
    }
  }
});
