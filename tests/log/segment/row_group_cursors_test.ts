import assert from "node:assert/strict";
import { test } from "node:test";
import { RowGroupCursor } from "../../../src/log/segment/row_group_cursor.ts";
import { RowGroupCursors } from "../../../src/log/segment/row_group_cursors.ts";
import { openSegment } from "../../../src/log/segment/segment_reader.ts";
import { sealCommits, smallBatches } from "../../support/test_segment.ts";

/** Has memory of its own. */
async function openCursor(): Promise<RowGroupCursor> {
  const { storage } = await sealCommits([smallBatches(100)]);
  const segment = await openSegment(storage, "0.parquet");
  const cursor = new RowGroupCursor();
  await segment.openRowGroup(0, cursor);
  return cursor;
}

test("RowGroupCursors.take() gives the one that stands at a place, once", async () => {
  const cursors = new RowGroupCursors();
  const [first, second] = [await openCursor(), await openCursor()];
  cursors.keep(first, "first");
  cursors.keep(second, "second");
  assert.deepEqual(cursors.take("second"), { cursor: second, isOpen: true });
  const another = cursors.take("second");
  assert.ok(!another.isOpen);
  assert.notEqual(another.cursor, first, "a reader may still come back for it");
  assert.deepEqual(cursors.take("first"), { cursor: first, isOpen: true });
});

test("RowGroupCursors.take() uses the memory of one that came to its end", async () => {
  const cursors = new RowGroupCursors();
  const [ended, open] = [await openCursor(), await openCursor()];
  cursors.keep(open, "open");
  cursors.keep(ended, null);
  assert.deepEqual(cursors.take("elsewhere"), { cursor: ended, isOpen: false });
});

test("RowGroupCursors.take() uses the memory of the one left longest where it is full", async () => {
  const open = [await openCursor(), await openCursor()];
  const cursors = new RowGroupCursors(2.5 * open[0]!.sizeBytes);
  open.forEach((cursor, number) => cursors.keep(cursor, `${number}`));
  assert.deepEqual(cursors.take("elsewhere"), { cursor: open[0], isOpen: false });
});

test("RowGroupCursors.keep() keeps no more than its bound", async () => {
  const open = await Promise.all(Array.from({ length: 4 }, openCursor));
  const cursors = new RowGroupCursors(2.5 * open[0]!.sizeBytes);
  open.forEach((cursor, number) => cursors.keep(cursor, `${number}`));
  assert.ok(cursors.take("3").isOpen);
  assert.ok(cursors.take("2").isOpen);
  assert.ok(!cursors.take("1").isOpen);
});
