/**
 * A seal is interrupted before each of its steps, and unsynced directory entries are kept or lost.
 * The next startup returns every event once, and the next seal completes.
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
import { withFile, without } from "../../support/forged_log.ts";
import { CRASHES } from "../../support/simulated_crash.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { rotateOnly, sealAll, SMALL_SEGMENTS } from "../../support/sealing.ts";
import { logTree, openTestLog, readBack, withTail } from "../../support/test_log.ts";

/** A log with a segment, a pending file and a tail. */
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

/** Asserts that every file is a pending file, the tail, or listed in the manifest. */
function assertClean(storage: SimulatedDisk, label: string): void {
  const listed = JSON.parse(storage.contents(MANIFEST_FILE).toString()).segments
    .map(({ path }: { path: string }) => path);
  for (const path of storage.tree().keys()) {
    const isExpected = listed.includes(path) || /^pending\/[^/]+\.ndjson$/.test(path) ||
      [MANIFEST_FILE, TAIL_FILE, PENDING_FOLDER, SEGMENTS_FOLDER].includes(path);
    assert.ok(isExpected, `${label}: ${path} is left over`);
  }
}

/** Opens a log and seals it on a disk that stops before operation `step` in the seal. */
async function sealUntil(storage: SimulatedDisk, step: number) {
  const { log } = await openTestLog(storage);
  const start = storage.operations.length;
  storage.hook = () => storage.operations.length - start >= step ? { errno: "EIO" } : null;
  const failure = await log.seal(() => {}, { bounds: SMALL_SEGMENTS }).then(() => null, String);
  storage.hook = null;
  if (failure !== null) assert.match(failure, /EIO/);
  return { log, failure };
}

/** Asserts that the log left by an interrupted seal is complete and that the next seal works. */
async function assertGoesOn(left: SimulatedDisk, expected: unknown[], label: string) {
  const { events, reports } = await readBack(left);
  assert.deepEqual(events, expected, label);
  assert.deepEqual(reports, [], label);
  assertClean(left, label);
  assert.deepEqual((await readBack(left.crash())).events, expected, `${label}: made durable`);
  await sealAll(left, SMALL_SEGMENTS);
  const sealed = left.crash();
  assert.deepEqual((await readBack(sealed)).events, expected, `${label}: sealed again`);
  assertClean(sealed, label);
  assert.equal(sealed.contents(TAIL_FILE).length, 0, label);
  await append(sealed, "new");
  assert.equal((await readBack(sealed)).events.length, expected.length + 2, label);
  assert.equal(left.openFiles + sealed.openFiles, 0, label);
}

for (const [name, crash] of Object.entries(CRASHES)) {
  test(`seal() stopped at any step writes nothing more, and the log reopens ${name}`, async () => {
    const tree = await mixedTree();
    const { events } = await readBack(new SimulatedDisk(tree));
    for (let step = 1;; step++) {
      const storage = new SimulatedDisk(tree);
      const { log, failure } = await sealUntil(storage, step);
      if (failure === null) break;
      // The program closes the log after the failure, when the disk works again.
      const failedAt = storage.operations.length;
      await log.close();
      const kinds = storage.operations.slice(failedAt).map(({ kind }) => kind);
      assert.deepEqual(kinds.filter((kind) => kind !== "close"), [], `stopped at ${step}`);
      await assertGoesOn(storage.crash(crash), events, `stopped at ${step}`);
    }
  });
}

/** A log whose only pending file has been sealed, but whose manifest does not list the segment. */
async function unlistedTree(): Promise<
  { tree: Tree; segment: string; pending: string; sealed: Tree }
> {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"], ["c"]]));
  await rotateOnly(storage);
  const before = storage.tree();
  const [sealed] = await sealAll(storage);
  const segment = sealed!.path;
  const pending = [...before.keys()].find((path) => path.startsWith("pending/"))!;
  const tree = new Map(before).set(segment, storage.contents(segment));
  return { tree, segment, pending, sealed: storage.tree() };
}

test("openLog() removes segments that are incomplete or covered by a pending file", async () => {
  const { tree, segment } = await unlistedTree();
  const storage = new SimulatedDisk(tree.set(SEGMENT_TEMPORARY_FILE, Buffer.from("PAR1")));
  const { events, reports } = await readBack(storage);
  assert.equal(events.length, 3);
  assert.deepEqual(reports, []);
  const left = storage.crash().tree();
  assert.ok(!left.has(segment) && !left.has(SEGMENT_TEMPORARY_FILE));
});

test("openLog() keeps and reports an unlisted segment that it does not need", async () => {
  const { tree, segment, pending, sealed } = await unlistedTree();
  const name = parseSegmentName(segment.slice("segments/".length))!;
  const earlier = segment.replace(name.firstEventId, "00000000-0000-7000-8000-000000000000");
  const bytes = Buffer.from("x");
  const inTail = withTail(without(tree, pending), Buffer.from(tree.get(pending)!));
  const cases: [Tree, string][] = [
    [inTail, segment],
    [withFile(sealed, earlier, bytes), earlier],
    [withFile(tree, "segments/unknown", bytes), "segments/unknown"],
  ];
  for (const [held, path] of cases) {
    const storage = new SimulatedDisk(held);
    const { reports } = await readBack(storage);
    assert.deepEqual(reports, [`${path}: not in the manifest, left in place`]);
    assert.ok(storage.crash().tree().has(path));
  }
});

test("openLog() syncs the manifest before it removes a sealed pending file", async () => {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"]]));
  await rotateOnly(storage);
  const pending = [...storage.tree()].find(([path]) => path.startsWith("pending/"))!;
  await sealAll(storage);
  const left = new SimulatedDisk(new Map([...storage.tree(), pending]));
  const { events } = await readBack(left);
  assert.equal(events.length, 2);
  assertClean(left.crash(), "after startup");
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
