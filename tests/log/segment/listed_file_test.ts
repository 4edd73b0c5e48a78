import assert from "node:assert/strict";
import { test } from "node:test";
import { checkListedFiles } from "../../../src/log/segment/listed_file.ts";
import { CorruptLogError } from "../../../src/log/storage/errors.ts";
import type { SegmentEntry } from "../../../src/log/segment/manifest.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

const HASH = "0".repeat(64);
const ID = "019b76da-a800-7001-8203-040506070809";

function entryOf(place: number): SegmentEntry {
  return {
    path: `segments/${place}.parquet`,
    bytes: 10 + place,
    events: 1,
    batches: 1,
    first_event_id: ID,
    last_event_id: ID,
    previous_head: HASH,
    head: HASH,
    sha256: HASH,
    sealed_at: "2026-01-01T00:00:00.000Z",
  };
}

const ENTRIES = Array.from({ length: 50 }, (_, place) => entryOf(place));

/** A disk with all these files, but for those whose sizes are given: null for none. */
function diskWith(sizes: Record<number, number | null>): SimulatedDisk {
  const files = ENTRIES.map(({ path, bytes }, place) => {
    const size = sizes[place] === undefined ? bytes : sizes[place];
    return [path, size] as const;
  });
  const there = files.filter(([, size]) => size !== null);
  return new SimulatedDisk(new Map(there.map(([path, size]) => [path, new Uint8Array(size!)])));
}

test("checkListedFiles() looks at every file and leaves none open", async () => {
  const disk = diskWith({});
  await checkListedFiles(disk, ENTRIES);
  await checkListedFiles(disk, []);
  assert.equal(disk.operations.filter(({ kind }) => kind === "size").length, ENTRIES.length);
  assert.equal(disk.openFiles, 0);
});

test("checkListedFiles() tells of the first file that is not as the manifest says", async () => {
  const cases: [sizes: Record<number, number | null>, message: RegExp][] = [
    [{ 0: null }, /^segments\/0\.parquet: is in the manifest, but missing$/],
    [{ 49: 0 }, /^segments\/49\.parquet: has 0 bytes, the manifest says 59$/],
    [{ 20: 31, 21: null }, /^segments\/20\.parquet: has 31 bytes, the manifest says 30$/],
    [{ 20: null, 21: 7, 45: null }, /^segments\/20\.parquet: is in the manifest, but missing$/],
  ];
  for (const [sizes, message] of cases) {
    const disk = diskWith(sizes);
    await assert.rejects(checkListedFiles(disk, ENTRIES), (error) => {
      assert.ok(error instanceof CorruptLogError);
      assert.match(error.message, message);
      return true;
    });
    assert.equal(disk.openFiles, 0, `${message}`);
  }
});

test("checkListedFiles() fails with what a look fails with, and leaves no file open", async () => {
  const disk = diskWith({});
  disk.hook = ({ kind, path }) =>
    kind === "size" && path === ENTRIES[18]!.path ? { errno: "EIO" } : null;
  await assert.rejects(checkListedFiles(disk, ENTRIES), { code: "EIO" });
  assert.equal(disk.openFiles, 0);
});
