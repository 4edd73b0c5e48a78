/**
 * Sealings that are stopped, so that segments cover a part of a pending file: what is read is the
 * same, and the next sealing goes on behind the segments that there are.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PENDING_FOLDER } from "../../../src/log/storage/file_names.ts";
import { CorruptLogError } from "../../../src/log/storage/errors.ts";
import { readManifest } from "../../../src/log/segment/manifest.ts";
import { verifyLog } from "../../../src/log/verify/verify.ts";
import { flipBit } from "../../support/corrupt.ts";
import { manifestOf, pendingPaths, withCommits } from "../../support/forged_log.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { sealAll, sealSome } from "../../support/sealing.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { logTree, openTestLog, readAll } from "../../support/test_log.ts";
import { verifyTree } from "../../support/verifying.ts";

/** Ends a segment with every commit. */
const EACH_COMMIT = { events: 1, bytes: Infinity };

/** Six events in five commits; the third one holds two. */
const COMMITS = [["a"], ["b"], [], ["c", "d"], ["e"], ["f"]];

/** A log whose first commits are in so many segments, the others in the same pending file. */
async function partlySealed(segments: number): Promise<Tree> {
  const storage = new SimulatedDisk(await logTree(COMMITS));
  await sealSome(storage, segments, EACH_COMMIT);
  return storage.tree();
}

async function eventsOf(tree: Tree) {
  const { log, entries, reports } = await openTestLog(new SimulatedDisk(tree));
  const events = await readAll(log.snapshot);
  const after = await Promise.all(
    events.map(async ({ event_id }) => (await readAll(log.snapshot, event_id)).length),
  );
  await log.close();
  return { events, after, reports, unsealed: entries.map(({ batch_id }) => batch_id) };
}

test("seal() that is stopped lists its segments, and what is left is read from the pending file", async () => {
  const whole = await eventsOf(await logTree(COMMITS));
  const unsealed = [["b", "c", "d", "e", "f"], ["c", "d", "e", "f"], ["e", "f"], ["f"]];
  for (const [place, left] of unsealed.entries()) {
    const tree = await partlySealed(place + 1);
    assert.equal(manifestOf(tree).segments.length, place + 1);
    assert.equal(pendingPaths(tree).length, 1);
    const opened = await eventsOf(tree);
    assert.deepEqual(opened.events, whole.events);
    assert.deepEqual(opened.after, [5, 4, 3, 2, 1, 0], "from any place");
    assert.deepEqual(opened.unsealed, left);
    assert.deepEqual(opened.reports, []);
  }
});

test("seal() goes on behind the segments of one that was stopped", async () => {
  const whole = await eventsOf(await logTree([...COMMITS, ["g"]]));
  for (const [segments, left] of [[1, 5], [2, 4], [3, 2], [4, 1]] as const) {
    const storage = new SimulatedDisk(await partlySealed(segments));
    const before = (await readManifest(storage))!.segments;
    const { log } = await openTestLog(storage);
    await log.append([preparedBatch("g")]);
    await log.close();
    const added = await sealAll(storage);
    assert.deepEqual((await readManifest(storage))!.segments, [...before, ...added]);
    assert.deepEqual(added.map(({ events }) => events), [left, 1]);
    assert.deepEqual(await storage.list(PENDING_FOLDER), []);
    assert.deepEqual((await eventsOf(storage.tree())).events, whole.events);
  }
});

test("seal() that is stopped ends its segment with the commit at hand", async () => {
  const storage = new SimulatedDisk(await logTree(COMMITS));
  let commits = 0;
  const { log } = await openTestLog(storage);
  const events: number[] = [];
  const onSegment = (entry: { events: number }) => void events.push(entry.events);
  const isDone = await log.seal(onSegment, { isStopped: () => ++commits >= 3 });
  await log.close();
  assert.deepEqual([isDone, ...events], [false, 4]);
  assert.deepEqual((await eventsOf(storage.tree())).unsealed, ["e", "f"]);
  assert.equal(storage.openFiles, 0);
});

test("seal() that is stopped at the end of a pending file leaves the next one", async () => {
  const storage = new SimulatedDisk(await partlySealed(1));
  const { log } = await openTestLog(storage);
  await log.append([preparedBatch("g")]);
  await log.close();
  assert.deepEqual((await sealSome(storage, 1, { events: 5, bytes: Infinity })).length, 1);
  assert.equal(pendingPaths(storage.tree()).length, 1);
  assert.deepEqual((await eventsOf(storage.tree())).unsealed, ["g"]);
});

test("seal() that is stopped when nothing is left has sealed all", async () => {
  const storage = new SimulatedDisk(await logTree(COMMITS));
  const { log } = await openTestLog(storage);
  let segments = 0;
  const isStopped = () => segments === 1;
  assert.ok(await log.seal(() => void (segments += 1), { isStopped }));
  await log.close();
  assert.deepEqual(pendingPaths(storage.tree()), []);
});

test("verifyLog() counts the events of a partly sealed file once", async () => {
  for (const segments of [1, 2, 3, 4]) {
    const tree = await partlySealed(segments);
    for (const chain of [false, true]) {
      const { report, failure } = await verifyTree(tree, { chain });
      assert.equal(failure, null, failure?.message);
      const { segments_checked, pending_checked, events_checked, orphans } = report;
      assert.deepEqual([segments_checked, pending_checked, events_checked], [segments, 1, 6]);
      assert.deepEqual(orphans, []);
    }
  }
});

test("verifyLog() holds each batch of a partly sealed file against the others once", async () => {
  const batchIds = Array.from({ length: 2000 }, (_, number) => `${number}`);
  const storage = new SimulatedDisk(await logTree([batchIds.slice(0, 500), batchIds.slice(500)]));
  await sealSome(storage, 1, EACH_COMMIT);
  const options = { chain: false, identitySlotsMax: 1024 };
  const { failure } = await verifyLog(new SimulatedDisk(storage.tree()), options);
  assert.equal(failure, null, failure?.message);
});

/** A partly sealed file in which commits were changed, its framing repaired. */
async function forged(change: Parameters<typeof withCommits>[2]): Promise<Tree> {
  const tree = await partlySealed(2);
  return withCommits(tree, pendingPaths(tree)[0]!, change);
}

test("a partly sealed file that does not join the segments is refused", async () => {
  const otherHead = await forged(([, second, empty]) => {
    for (const { commit } of [second!, empty!]) commit.head = "0".repeat(64);
  });
  const withoutSecond = await forged(([first, , , ...rest]) => [first!, ...rest]);
  const tree = await partlySealed(2);
  const [path] = pendingPaths(tree);
  const damaged = new Map(tree).set(path!, flipBit(tree.get(path!)!, 8 * 400));
  const cases = [
    { tree: otherHead, code: "pending_invalid", chainCode: "chain_head_mismatch" },
    { tree: withoutSecond, code: "order_invalid" },
    { tree: damaged, code: "pending_invalid" },
  ];
  for (const { tree, code, chainCode = code } of cases) {
    await assert.rejects(openTestLog(new SimulatedDisk(tree)), CorruptLogError);
    assert.equal((await verifyTree(tree, { chain: false })).report.failure, code);
    assert.equal((await verifyTree(tree, { chain: true })).report.failure, chainCode);
  }
});

test("a segment that ends within a commit of a pending file is refused", async () => {
  const tree = await forged(([first, second, , third, ...rest]) => {
    const batches = [...second!.commit.batches, ...third!.commit.batches];
    const lines = [...second!.lines, ...third!.lines];
    return [first!, { commit: { ...third!.commit, batches }, lines }, ...rest];
  });
  await assert.rejects(openTestLog(new SimulatedDisk(tree)), /segments cover it through/);
  assert.equal((await verifyTree(tree, { chain: false })).report.failure, "order_invalid");
});
