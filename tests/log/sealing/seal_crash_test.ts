/**
 * Sealing that is cut off before each of its steps, with names that no sync has followed kept or
 * lost: the next start finds every event once, and the next sealing completes.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  MANIFEST_FILE,
  MANIFEST_TEMPORARY_FILE,
  parseSegmentName,
  PENDING_FOLDER,
  SEGMENT_TEMPORARY_FILE,
  SEGMENTS_FOLDER,
  TAIL_FILE,
} from "../../../src/log/storage/file_names.ts";
import {
  ALL_DONE,
  type CrashChoice,
  NAMES_ONLY,
  SYNCED_ONLY,
  torn,
} from "../../support/simulated_crash.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { rotateOnly, sealAll, SMALL_SEGMENTS } from "../../support/sealing.ts";
import { logTree, openTestLog, readAll } from "../../support/test_log.ts";

const CRASHES: Record<string, CrashChoice> = {
  "with what was synced": SYNCED_ONLY,
  "with all names": NAMES_ONLY,
  "with all names and half of each file": torn("half of the length"),
  "with all that was done": ALL_DONE,
};

/** A log of a segment, a pending file and a tail. */
async function mixedTree(): Promise<Tree> {
  const storage = new SimulatedDisk(await logTree([["a", "b"], ["c"], []]));
  await sealAll(storage);
  for (const batchId of ["d", "e", "f", "g"]) await append(storage, batchId);
  await rotateOnly(storage);
  for (const batchId of ["h", "i"]) await append(storage, batchId);
  return storage.tree();
}

async function append(storage: SimulatedDisk, batchId: string): Promise<void> {
  const { log } = await openTestLog(storage);
  await log.append([preparedBatch(batchId, { events: [{}, { payload: "x".repeat(500) }] })]);
  await log.close();
}

async function eventsOf(storage: SimulatedDisk) {
  const { log, reports } = await openTestLog(storage);
  const events = await readAll(log.snapshot);
  await log.close();
  return { events, reports };
}

/** Every file of a log must be one that its manifest lists, a pending file, or the tail. */
function assertClean(storage: SimulatedDisk, label: string): void {
  const listed = JSON.parse(storage.contents(MANIFEST_FILE).toString()).segments
    .map(({ path }: { path: string }) => path);
  for (const path of storage.tree().keys()) {
    const isExpected = listed.includes(path) || /^pending\/[^/]+\.ndjson$/.test(path) ||
      [MANIFEST_FILE, TAIL_FILE, PENDING_FOLDER, SEGMENTS_FOLDER].includes(path);
    assert.ok(isExpected, `${label}: ${path} is left`);
  }
}

/** Seals a log until the disk stops before operation `step`. @returns whether it got so far. */
async function sealUntil(storage: SimulatedDisk, step: number): Promise<boolean> {
  const { log } = await openTestLog(storage);
  const start = storage.operations.length;
  storage.hook = () => storage.operations.length - start >= step ? { errno: "EIO" } : null;
  try {
    await log.seal(() => {}, { bounds: SMALL_SEGMENTS });
    return false;
  } catch (error) {
    assert.match(String(error), /EIO/);
    // What the failed program still does on its way out, on a disk that works again.
    storage.hook = null;
    await log.close();
    return true;
  } finally {
    storage.hook = null;
  }
}

/** The same without a program that goes on: the machine stops there. */
async function stoppedAt(tree: Tree, step: number, crash: CrashChoice) {
  const storage = new SimulatedDisk(tree);
  const { log } = await openTestLog(storage);
  const start = storage.operations.length;
  storage.hook = () => storage.operations.length - start >= step ? { errno: "EIO" } : null;
  await assert.rejects(log.seal(() => {}, { bounds: SMALL_SEGMENTS }), /EIO/);
  storage.hook = null;
  return storage.crash(crash);
}

/** Operations that leave the folder as it is: to stop before one is to stop before the next. */
const WITHOUT_EFFECT = new Set(["read", "size", "close", "list"]);

/** The numbers of the operations of a sealing that change something, the first is 1. */
async function changingSteps(tree: Tree): Promise<number[]> {
  const storage = new SimulatedDisk(tree);
  const { log } = await openTestLog(storage);
  const start = storage.operations.length;
  await log.seal(() => {}, { bounds: SMALL_SEGMENTS });
  return storage.operations.slice(start)
    .flatMap(({ kind }, place) => WITHOUT_EFFECT.has(kind) ? [] : [place + 1]);
}

/** What must hold of whatever a cut-off sealing has left. */
async function assertGoesOn(left: SimulatedDisk, expected: unknown[], label: string) {
  const { events, reports } = await eventsOf(left);
  assert.deepEqual(events, expected, label);
  assert.deepEqual(reports, [], label);
  assertClean(left, label);
  assert.deepEqual((await eventsOf(left.crash())).events, expected, `${label}: made durable`);
  await sealAll(left, SMALL_SEGMENTS);
  const sealed = left.crash();
  assert.deepEqual((await eventsOf(sealed)).events, expected, `${label}: sealed again`);
  assertClean(sealed, label);
  assert.equal(sealed.contents(TAIL_FILE).length, 0, label);
  await append(sealed, "new");
  assert.equal((await eventsOf(sealed)).events.length, expected.length + 2, label);
  assert.equal(left.openFiles + sealed.openFiles, 0, label);
}

for (const [name, crash] of Object.entries(CRASHES)) {
  test(`seal() stopped at any step ${name} loses and doubles nothing`, async () => {
    const tree = await mixedTree();
    const { events } = await eventsOf(new SimulatedDisk(tree));
    const steps = await changingSteps(tree);
    assert.ok(steps.length > 40, `${steps.length} steps`);
    for (const step of steps) {
      const left = await stoppedAt(tree, step, crash);
      await assertGoesOn(left, events, `stopped at operation ${step}`);
    }
  });
}

test("seal() that fails at any step leaves a log that goes on, whatever close() does", async () => {
  const tree = await mixedTree();
  const { events } = await eventsOf(new SimulatedDisk(tree));
  for (let step = 1;; step++) {
    const storage = new SimulatedDisk(tree);
    if (!await sealUntil(storage, step)) break;
    await assertGoesOn(storage.crash(NAMES_ONLY), events, `failed at operation ${step}`);
  }
});

test("seal() that failed writes nothing more, to no file", async () => {
  const tree = await logTree([["a"], ["b"]]);
  for (const step of await changingSteps(tree)) {
    const storage = new SimulatedDisk(tree);
    const { log } = await openTestLog(storage);
    const start = storage.operations.length;
    storage.hook = () => storage.operations.length - start === step ? { errno: "EIO" } : null;
    await assert.rejects(log.seal(() => {}), /EIO/);
    const failedAt = storage.operations.length;
    await log.close();
    const kinds = storage.operations.slice(failedAt).map(({ kind }) => kind);
    assert.deepEqual(kinds.filter((kind) => kind !== "close"), [], `failed at operation ${step}`);
  }
});

test("openLog() cut off at any step behind a cut-off sealing is made good by the next one", async () => {
  const tree = await mixedTree();
  const { events } = await eventsOf(new SimulatedDisk(tree));
  const steps = await changingSteps(tree);
  for (const step of steps.filter((_, place) => place % 4 === 0)) {
    const left = (await stoppedAt(tree, step, NAMES_ONLY)).tree();
    for (let second = 1;; second++) {
      const storage = new SimulatedDisk(left);
      storage.hook = () => storage.operations.length >= second ? { errno: "EIO" } : null;
      const opened = await openTestLog(storage).catch(() => null);
      if (opened !== null) break;
      for (const crash of [SYNCED_ONLY, NAMES_ONLY]) {
        const again = storage.crash(crash);
        const label = `stopped at operation ${step}, then at ${second}`;
        assert.deepEqual((await eventsOf(again)).events, events, label);
        assertClean(again, label);
      }
    }
  }
});

/** A log whose one pending file was sealed, and the manifest put back to before. */
async function unlistedTree(): Promise<{ tree: Tree; segment: string; pending: string }> {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"], ["c"]]));
  await rotateOnly(storage);
  const before = storage.tree();
  const [sealed] = await sealAll(storage);
  const segment = sealed!.path;
  const pending = [...before.keys()].find((path) => path.startsWith("pending/"))!;
  return { tree: new Map(before).set(segment, storage.contents(segment)), segment, pending };
}

test("openLog() removes an unlisted segment whose events are in a pending file", async () => {
  const { tree, segment } = await unlistedTree();
  const storage = new SimulatedDisk(tree);
  const { events, reports } = await eventsOf(storage);
  assert.equal(events.length, 3);
  assert.deepEqual(reports, []);
  assert.ok(!storage.crash().tree().has(segment));
});

test("openLog() keeps an unlisted segment that no pending file covers, and says so", async () => {
  const { tree, segment, pending } = await unlistedTree();
  const name = parseSegmentName(segment.slice("segments/".length))!;
  const later = segment.replace(name.lastEventId, "ffffffff-ffff-7fff-bfff-ffffffffffff");
  const earlier = segment.replace(name.firstEventId, "00000000-0000-7000-8000-000000000000");
  const without = new Map(tree);
  without.delete(pending);
  const cases: [Tree, string][] = [
    [without, segment],
    [new Map(tree).set(later, Buffer.from("x")), later],
    [new Map(tree).set(earlier, Buffer.from("x")), earlier],
    [new Map(tree).set("segments/unknown", Buffer.from("x")), "segments/unknown"],
  ];
  for (const [held, path] of cases) {
    const storage = new SimulatedDisk(held);
    const { reports } = await eventsOf(storage);
    assert.deepEqual(reports, [`${path}: not in the manifest, left as it is`]);
    assert.ok(storage.crash().tree().has(path));
  }
});

test("openLog() makes the manifest durable anew before it removes a sealed pending file", async () => {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"]]));
  await rotateOnly(storage);
  const pending = [...storage.tree()].find(([path]) => path.startsWith("pending/"))!;
  await sealAll(storage);
  const left = new SimulatedDisk(new Map([...storage.tree(), pending]));
  const { events } = await eventsOf(left);
  assert.equal(events.length, 2);
  assertClean(left.crash(), "after the start");
  const steps = left.operations.map(({ kind, path }) => `${kind} ${path}`);
  const expected = [
    `sync ${MANIFEST_TEMPORARY_FILE}`,
    `rename ${MANIFEST_TEMPORARY_FILE}`,
    "syncFolder .",
    `remove ${pending[0]}`,
  ];
  const places = expected.map((step) => steps.lastIndexOf(step));
  assert.ok(!places.includes(-1), steps.join("\n"));
  assert.deepEqual(places, places.toSorted((a, b) => a - b));
});

test("openLog() removes the file that a segment was being written to", async () => {
  const tree = (await logTree([["a"]])).set(SEGMENT_TEMPORARY_FILE, Buffer.from("PAR1"));
  const storage = new SimulatedDisk(tree);
  const { events, reports } = await eventsOf(storage);
  assert.equal(events.length, 1);
  assert.deepEqual(reports, []);
  assert.ok(!storage.crash().tree().has(SEGMENT_TEMPORARY_FILE));
});
