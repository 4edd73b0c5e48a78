/** `Log.seal()`: what it writes and tells, and that what is read afterwards is what was there. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import { EventScan } from "../../../src/log/read/event_scan.ts";
import { MANIFEST_FILE, pendingPath, TAIL_FILE } from "../../../src/log/storage/file_names.ts";
import type { SegmentEntry } from "../../../src/log/segment/manifest.ts";
import { CorruptLogError } from "../../../src/log/storage/errors.ts";
import type { LogSnapshot } from "../../../src/log/read/snapshot.ts";
import type { EventFilter } from "../../../src/log/line/stored_line.ts";
import { flipBit } from "../../support/corrupt.ts";
import { pendingPaths } from "../../support/forged_log.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { type EventOptions, preparedBatch } from "../../support/prepared.ts";
import { rotateOnly, sealAll, sealOldest, SMALL_SEGMENTS } from "../../support/sealing.ts";
import {
  joinPieces,
  logTree,
  openTestLog,
  readAll,
  unsealedBatches,
} from "../../support/test_log.ts";
import { verifyStorage } from "../../support/verifying.ts";

/** Chain head after events, by what replay returns of them. */
function headOf(events: readonly CommittedEvent[]): string {
  let head = createHash("sha256").update("service/genesis/v1").digest();
  for (const { event_hash } of events) {
    head = createHash("sha256").update(head).update(Buffer.from(event_hash, "hex")).digest();
  }
  return head.toString("hex");
}

/** The lines of all events of a snapshot that pass, as replay returns them. */
function text(snapshot: LogSnapshot, filter?: EventFilter, after?: string): Promise<string> {
  const limits = { limitEvents: Infinity, limitBytes: Infinity };
  return joinPieces(new EventScan(snapshot, { after, filter: filter ?? {}, ...limits }));
}

async function filesOf(storage: SimulatedDisk): Promise<string[]> {
  const { log } = await openTestLog(storage);
  const paths = log.snapshot.files.map(({ path }) => path);
  await log.close();
  return paths;
}

test("seal() puts all commits into one segment, and the log goes on behind it", async () => {
  const commits = [["a", "b"], ["c"], [], ["d"]];
  const storage = new SimulatedDisk(await logTree(commits));
  const { log } = await openTestLog(storage);
  const before = await text(log.snapshot);
  const sealed: SegmentEntry[] = [];
  await log.seal((entry) => void sealed.push(entry));
  assert.equal(await text(log.snapshot), before);
  assert.deepEqual(log.snapshot.files.map(({ path }) => path), sealed.map(({ path }) => path));
  assert.ok(!log.hasUnsealed);
  await log.append([preparedBatch("e")]);
  assert.ok(log.hasUnsealed);
  const whole = await text(log.snapshot);
  await log.close();

  const unsealed = await openTestLog(new SimulatedDisk(await logTree([...commits, ["e"]])));
  assert.equal(whole, await text(unsealed.log.snapshot), "ids and hashes go on as without sealing");
  const reopened = await openTestLog(storage);
  assert.equal(await text(reopened.log.snapshot), whole);
  assert.deepEqual((await unsealedBatches(reopened.log)).map(({ batch_id }) => batch_id), ["e"]);
  await reopened.log.close();
  assert.equal(storage.openFiles, 0);
});

test("seal() tells the facts of each segment, and the head that replayed events give", async () => {
  const storage = new SimulatedDisk(await logTree([["a", "b"], ["c"], ["d", "e"], ["f"]]));
  const sealed = await sealAll(storage, { events: 2, bytes: Infinity });
  const { log } = await openTestLog(storage);
  const events = await readAll(log.snapshot);
  assert.deepEqual(sealed.map((segment) => segment.events), [2, 3, 1]);
  let end = 0;
  for (const segment of sealed) {
    const held = events.slice(end, end += segment.events);
    assert.equal(segment.previous_head, headOf(events.slice(0, end - segment.events)));
    assert.equal(segment.head, headOf(events.slice(0, end)));
    assert.equal(segment.batches, new Set(held.map(({ batch_id }) => batch_id)).size);
    assert.equal(segment.first_event_id, held[0]!.event_id);
    assert.equal(segment.last_event_id, held.at(-1)!.event_id);
    const bytes = storage.contents(segment.path);
    assert.equal(segment.bytes, bytes.length);
    assert.equal(segment.sha256, createHash("sha256").update(bytes).digest("hex"));
  }
  const manifest = JSON.parse(storage.contents(MANIFEST_FILE).toString());
  assert.deepEqual(manifest.segments, sealed);
});

test("seal() never splits a batch over segments", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const sizes = [1, 5, 2, 9, 1, 1, 4];
  for (const [number, size] of sizes.entries()) {
    const events = Array.from({ length: size }, () => ({}));
    await log.append([preparedBatch(`${number}`, { events })]);
  }
  await log.close();
  const sealed = await sealAll(storage, { events: 3, bytes: Infinity });
  assert.deepEqual(sealed.map(({ events }) => events), [6, 11, 6]);
  assert.deepEqual(sealed.map(({ batches }) => batches), [2, 2, 3]);
});

test("seal() leaves durably nothing but the manifest, segments and an empty tail", async () => {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"], []]));
  await rotateOnly(storage);
  const sealed = await sealAll(storage, SMALL_SEGMENTS);
  const names = [...storage.crash().tree().keys()].filter((path) => path.includes("."));
  assert.deepEqual(names.sort(), [MANIFEST_FILE, ...sealed.map(({ path }) => path), TAIL_FILE]);
  assert.equal(storage.contents(TAIL_FILE).length, 0);
});

test("seal() seals what an earlier one has only rotated, each file on its own", async () => {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"]]));
  await rotateOnly(storage);
  const { log } = await openTestLog(storage);
  assert.ok(log.hasUnsealed);
  const [first, second] = await readAll(log.snapshot);
  const pending = pendingPath(first!.event_id, second!.event_id);
  assert.deepEqual(log.snapshot.files.map(({ path }) => path), [pending]);
  await log.append([preparedBatch("c")]);
  const before = await text(log.snapshot);
  await log.close();
  const sealed = await sealAll(storage);
  assert.deepEqual(sealed.map(({ events }) => events), [2, 1]);
  assert.deepEqual(await filesOf(storage), sealed.map(({ path }) => path));
  assert.equal(await text((await openTestLog(storage)).log.snapshot), before);
});

test("seal() of a log that holds no unsealed events does nothing", async () => {
  const storage = new SimulatedDisk(await logTree([["a"]]));
  await sealAll(storage);
  const before = storage.tree();
  assert.deepEqual(await sealAll(storage), []);
  assert.deepEqual(storage.tree(), before);
});

test("openLog() reads footers of segments and no row", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const events = Array.from({ length: 2000 }, (_, number) => ({ payload: `${number}` }));
  await log.append([preparedBatch("a", { events })]);
  await log.close();
  const [segment] = await sealAll(storage);
  const before = storage.operations.length;
  await openTestLog(storage);
  const reads = storage.operations.slice(before)
    .filter(({ kind, path }) => kind === "read" && path === segment!.path);
  const readBytes = reads.reduce((sum, read) => sum + read.sizeBytes!, 0);
  assert.ok(readBytes < segment!.bytes / 2, `${readBytes} of ${segment!.bytes} bytes`);
});

test("seal() keeps every line over several row groups, found from any place and by any filter", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const event = (number: number): EventOptions => ({
    stream: `s-${Math.floor(number / 5000)}`,
    recordKey: `key ${number % 9973}`,
    kind: number % 1000 === 999 ? "deleted" : "upserted",
  });
  for (let batch = 0; batch < 3; batch++) {
    const events = Array.from({ length: 4500 }, (_, place) => event(batch * 4500 + place));
    await log.append([preparedBatch(`${batch}`, { events })]);
  }
  const ids = (await readAll(log.snapshot)).map(({ event_id }) => event_id);
  const asked: [EventFilter, string | undefined][] = [
    ...[0, 1, 4094, 4095, 4096, 4097, 8191, 8192, 13498, 13499].map((place) =>
      [{}, ids[place]] as [EventFilter, string]
    ),
    ...["s-0", "s-1", "s-2", "s"].map((stream) =>
      [{ stream }, undefined] as [EventFilter, undefined]
    ),
    [{ kind: "deleted" }, ids[4500]],
    [{ recordKey: "key 17" }, undefined],
    [{ recordKey: "key 17", stream: "s-1" }, ids[4095]],
    [{ recordKey: "key 10000" }, undefined],
    [{ source: "crm" }, undefined],
  ];
  const answers = async ({ snapshot }: { snapshot: LogSnapshot }) =>
    await Promise.all(asked.map(([filter, after]) => text(snapshot, filter, after)));
  const before = await answers(log);
  await log.seal(() => {});
  assert.deepEqual(await answers(log), before);
});

test("seal() refuses a tail that changed under it, and what is committed stays", async () => {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"]]));
  await rotateOnly(storage);
  const { log } = await openTestLog(storage);
  const [{ path } = { path: "" }] = log.snapshot.files;
  await log.close();
  const tree = storage.tree();
  const bytes = tree.get(path)!;
  // Right when the log is opened, wrong when it is read again.
  const damaged = new SimulatedDisk(tree);
  const opened = await openTestLog(damaged);
  const file = await damaged.open(path, "write");
  const at = bytes.length - 100;
  await file.write(flipBit(bytes, at * 8).subarray(at, at + 1), at);
  await file.close();
  await assert.rejects(opened.log.seal(() => {}), CorruptLogError);
  await opened.log.close();
  assert.equal(damaged.openFiles, 0);
  assert.deepEqual(JSON.parse(damaged.contents(MANIFEST_FILE).toString()).segments, []);
  assert.ok(damaged.tree().has(path), "the pending file is not removed");
});

/** Ends a segment with every commit. */
const EACH_COMMIT = { events: 1, bytes: Infinity };

/** A pending file of five commits and six events, and a tail of one more. */
async function pendingAndTail(): Promise<SimulatedDisk> {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"], [], ["c", "d"], ["e"], ["f"]]));
  await rotateOnly(storage);
  const { log } = await openTestLog(storage);
  await log.append([preparedBatch("g")]);
  await log.close();
  return storage;
}

async function batchIdsOf(storage: SimulatedDisk): Promise<string[]> {
  const { log, reports } = await openTestLog(storage);
  const events = await readAll(log.snapshot);
  await log.close();
  assert.deepEqual(reports, []);
  return events.map(({ batch_id }) => batch_id);
}

const ALL = ["a", "b", "c", "d", "e", "f", "g"];

test("seal() that is stopped within a pending file leaves all of that to the next one", async () => {
  for (const stopAt of [1, 2, 3, 5]) {
    const storage = await pendingAndTail();
    const { log } = await openTestLog(storage);
    let commits = 0;
    const settings = { bounds: EACH_COMMIT, isStopped: () => ++commits >= stopAt };
    assert.ok(!(await log.seal(() => assert.fail("nothing is sealed"), settings)));
    await log.close();
    assert.equal(storage.openFiles, 0);
    assert.equal(pendingPaths(storage.tree()).length, 2);
    const { report, failure } = await verifyStorage(storage, { chain: true });
    assert.equal(failure, null, failure?.message);
    assert.deepEqual([report.pending_checked, report.events_checked], [2, 7]);
    // The segments that were made so far are orphans.
    assert.equal(report.orphans.length, stopAt - 1);
    assert.deepEqual(await batchIdsOf(storage), ALL);
    assert.deepEqual((await sealAll(storage, EACH_COMMIT)).map(({ events }) => events), [
      ...[1, 1, 2, 1, 1],
      1,
    ]);
    assert.deepEqual(await batchIdsOf(storage), ALL);
    assert.deepEqual((await verifyStorage(storage)).report.orphans, []);
  }
});

test("seal() that is stopped at the end of a pending file leaves the next one", async () => {
  const storage = await pendingAndTail();
  assert.equal((await sealOldest(storage)).length, 2);
  assert.equal(pendingPaths(storage.tree()).length, 1);
  assert.deepEqual(await batchIdsOf(storage), ALL);
  assert.deepEqual((await sealAll(storage)).map(({ events }) => events), [1]);
  assert.deepEqual(await batchIdsOf(storage), ALL);
});

test("seal() that is stopped when nothing is left has sealed all", async () => {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"]]));
  const { log } = await openTestLog(storage);
  let segments = 0;
  const isStopped = () => segments === 1;
  assert.ok(await log.seal(() => void (segments += 1), { isStopped }));
  await log.close();
  assert.deepEqual(pendingPaths(storage.tree()), []);
});
