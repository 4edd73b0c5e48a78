/** The first startup. tests/faults/crash_sequences_test.ts interrupts it at every step. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  LOCK_FILE,
  MANIFEST_FILE,
  PENDING_FOLDER,
  SEGMENTS_FOLDER,
  TAIL_FILE,
} from "../../src/log/storage/file_names.ts";
import { SimulatedDisk, type Tree } from "../support/simulated_disk.ts";
import {
  assertRefused,
  logTree,
  openTestLog,
  tailOf,
  unsealedBatches,
} from "../support/test_log.ts";

const EMPTY_LOG_NAMES = [MANIFEST_FILE, PENDING_FOLDER, SEGMENTS_FOLDER, TAIL_FILE].sort();

function namesOf(storage: SimulatedDisk): string[] {
  return [...storage.tree().keys()].sort();
}

test("openLog() creates a durable empty log in an empty directory", async () => {
  for (const tree of [new Map(), new Map([[LOCK_FILE, Buffer.alloc(0)]])]) {
    const storage = new SimulatedDisk(tree);
    const { log, reports } = await openTestLog(storage);
    assert.equal(log.snapshot.frontier, null);
    assert.deepEqual([...await unsealedBatches(log), ...reports], []);
    assert.deepEqual(namesOf(storage), [...EMPTY_LOG_NAMES, ...tree.keys()].sort());
    assert.deepEqual(storage.crash().tree(), storage.tree());
    await log.close();
    assert.equal(tailOf(storage.tree()).length, 0, "an empty log needs no clean shutdown marker");
    assert.equal(storage.openFiles, 0);
  }
});

test("openLog() refuses a log without its manifest", async () => {
  const id = "019b76da-a800-7001-8203-040506070809";
  const empty = await logTree([]);
  empty.delete(MANIFEST_FILE);
  const held: Tree[] = [
    new Map(empty).set(TAIL_FILE, tailOf(await logTree([["a"]]))),
    new Map(empty).set(TAIL_FILE, Buffer.from("x")),
    new Map(empty).set(`${PENDING_FOLDER}/${id}_${id}.ndjson`, Buffer.alloc(0)),
    new Map(empty).set(`${SEGMENTS_FOLDER}/x.parquet`, Buffer.alloc(0)),
  ];
  for (const tree of held) await assertRefused(tree, [...tree.keys()].join());
});

test("openLog() fails when the directory does not exist, and does not create it", async () => {
  const storage = new SimulatedDisk();
  storage.list = () => Promise.resolve(null);
  await assert.rejects(openTestLog(storage), /does not exist/);
  assert.equal(storage.tree().size, 0);
});
