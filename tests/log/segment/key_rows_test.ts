import assert from "node:assert/strict";
import { test } from "node:test";
import { KeyRows } from "../../../src/log/segment/key_rows.ts";
import { openSegment } from "../../../src/log/segment/segment_reader.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { sealCommits } from "../../support/test_segment.ts";

async function segmentOfKeys(...keys: string[]) {
  const events = keys.map((recordKey) => ({ recordKey }));
  const { storage } = await sealCommits([[preparedBatch("keys", { events })]]);
  return await openSegment(storage, "0.parquet");
}

test("KeyRows.find() gives all rows of a key, and none for one of another hash", async () => {
  const segment = await segmentOfKeys("a", "b", "a", "é\n", "a");
  const keyRows = new KeyRows();
  assert.deepEqual(await keyRows.find(segment, 0, "a"), [0, 2, 4]);
  assert.deepEqual(await keyRows.find(segment, 0, "é\n"), [3]);
  assert.deepEqual(await keyRows.find(segment, 0, "c"), []);
});

test("KeyRows.find() reads a row group once while there is room for it", async () => {
  const segment = await segmentOfKeys("a", "b");
  const roomy = new KeyRows();
  const full = new KeyRows(3);
  for (const keyRows of [roomy, full]) await keyRows.find(segment, 0, "a");
  await segment.close();
  assert.deepEqual(await roomy.find(segment, 0, "b"), [1]);
  await assert.rejects(full.find(segment, 0, "b"));
});
