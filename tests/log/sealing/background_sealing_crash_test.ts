/**
 * The disk stops or fails at each operation in a seal that runs during commits. Acknowledged
 * batches exist once, and the log keeps working.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  MANIFEST_FILE,
  PENDING_FOLDER,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
} from "../../../src/log/storage/file_names.ts";
import { StorageFullError } from "../../../src/log/storage/errors.ts";
import { treeHash } from "../../faults/support/crash_points.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { rotateOnly, sealAll } from "../../support/sealing.ts";
import { SealingSteps, type SealingStepsOptions, untilQuiet } from "../../support/sealing_steps.ts";
import { CRASHES, SYNCED_ONLY } from "../../support/simulated_crash.ts";
import {
  changesDisk,
  type Fault,
  type Operation,
  SimulatedDisk,
  type Tree,
} from "../../support/simulated_disk.ts";
import { appendTo, logTree, openTestLog, readAll, readBack } from "../../support/test_log.ts";
import { verifyStorage } from "../../support/verifying.ts";

/** Segment limits with which a file of two commits yields two segments. */
const BOUNDS = { events: 1, bytes: 100_000 };

/** A log with a segment and a tail of two commits. */
async function startTree(): Promise<Tree> {
  const storage = new SimulatedDisk(await logTree([["a"]]));
  await sealAll(storage);
  await appendTo(storage, "b", "c");
  return storage.tree();
}

/** A log with a segment and two rotated tails, both of which are sealed while sealing is behind. */
async function behindTree(): Promise<Tree> {
  const storage = new SimulatedDisk(await logTree([["a"]]));
  await sealAll(storage);
  for (const batchId of ["b", "c"]) {
    await appendTo(storage, batchId);
    await rotateOnly(storage);
  }
  return storage.tree();
}

/** The log at the start, and its limits. */
const SCENES: Record<string, [() => Promise<Tree>, SealingStepsOptions]> = {
  "sealing": [startTree, { bounds: BOUNDS }],
  "sealing two files at once": [behindTree, { bounds: BOUNDS, backlogWaitBytes: 1 }],
};

const BEFORE = ["a", "b", "c"];
/** The first append rotates the tail. The last one does too, once the first file is sealed. */
const APPENDED = ["d", "e", "f"];

/** Returns the fault for an operation with a given index from 0, or null if it succeeds. */
type FaultAt = (place: number, operation: Operation) => Fault | null;

/** Appends while the log seals, and injects faults. */
async function run(
  tree: Tree,
  faultAt: FaultAt,
  options: SealingStepsOptions = { bounds: BOUNDS },
) {
  const storage = new SimulatedDisk(tree);
  const steps = new SealingSteps(options);
  const begun = Promise.withResolvers<void>();
  steps.beforeMake = () => begun.promise;
  const { log, reports } = await openTestLog(storage, steps.on());
  const start = storage.operations.length;
  let place = 0;
  storage.hook = (operation) => faultAt(place++, operation);
  begun.resolve();
  const acknowledged = [...BEFORE];
  const refusals: unknown[] = [];
  const append = async (batchId: string) => {
    try {
      await log.append([preparedBatch(batchId)]);
      acknowledged.push(batchId);
    } catch (error) {
      refusals.push(error);
    }
  };
  for (const [number, batchId] of APPENDED.entries()) {
    await append(batchId);
    // The second append runs while the first rotated file is being sealed.
    if (number !== 0) await untilQuiet(storage);
  }
  return { storage, steps, log, reports, start, append, acknowledged, refusals };
}

/** The batch ids of all events in a log that may need repair. */
async function heldBy(storage: SimulatedDisk): Promise<string[]> {
  return (await readBack(storage)).events.map(({ batch_id }) => batch_id);
}

/** Asserts that a log has the acknowledged batches and at most one other. */
function assertHeld(batchIds: string[], acknowledged: string[], label: string): void {
  const submitted = [...BEFORE, ...APPENDED];
  const unknown = batchIds.filter((id) => !acknowledged.includes(id));
  assert.deepEqual(batchIds.filter((id) => !unknown.includes(id)), acknowledged, label);
  assert.ok(unknown.length <= 1 && unknown.every((id) => submitted.includes(id)), label);
}

/** The operations in a run without faults. */
async function operationsOf(
  tree: Tree,
  options: SealingStepsOptions,
): Promise<readonly Operation[]> {
  const { storage, log, start, acknowledged } = await run(tree, () => null, options);
  assert.deepEqual(acknowledged, [...BEFORE, ...APPENDED]);
  const operations = storage.operations.slice(start);
  await log.close();
  return operations;
}

for (const [scene, [treeOf, options]] of Object.entries(SCENES)) {
  test(`a crash at any step of ${scene} during commits loses nothing`, async () => {
    const tree = await treeOf();
    const operations = await operationsOf(tree, options);
    const places = operations.flatMap((operation, n) => changesDisk(operation) ? [n] : []);
    assert.ok(places.length > 45, `${places.length} steps`);
    // Many steps leave the same files.
    const checked = new Set<string>();
    for (const place of places) {
      const { storage, acknowledged } = await run(
        tree,
        (at) => at >= place ? { errno: "EIO" } : null,
        options,
      );
      storage.hook = null;
      for (const [name, crash] of Object.entries(CRASHES)) {
        const label = `stopped before operation ${place}, ${name}`;
        const left = storage.crash(crash);
        const state = `${treeHash(left.tree())} ${acknowledged}`;
        if (checked.has(state)) continue;
        checked.add(state);
        const batchIds = await heldBy(left);
        assertHeld(batchIds, acknowledged, label);
        assert.deepEqual(await heldBy(left.crash()), batchIds, `${label}: made durable`);
        await sealAll(left);
        assert.deepEqual(await heldBy(left), batchIds, `${label}: sealed again`);
        const { report } = await verifyStorage(left, { chain: false });
        assert.ok(report.ok && report.orphans.length === 0, `${label}: ${JSON.stringify(report)}`);
      }
    }
  });
}

/**
 * Whether a failure of an operation may fail a commit or stop the writer, not only delay sealing.
 * @param before the previous operation.
 */
function mayRefuse({ path, kind }: Operation, before: Operation | undefined): boolean {
  // Operations on a new tail carry the path under which it was created.
  const isTail = path === TAIL_FILE || path === TAIL_TEMPORARY_FILE && before?.mode !== "create";
  return isTail && (kind === "write" || kind === "sync") || stopsWriter({ path, kind });
}

/** Whether a failure of an operation leaves a rotation unfinished. */
function stopsWriter({ path, kind }: Pick<Operation, "path" | "kind">): boolean {
  return kind === "syncFolder" || kind === "rename" && path === TAIL_TEMPORARY_FILE;
}

const FAILURES = Object.entries(SCENES).flatMap(([scene, settings]) =>
  ["EIO", "ENOSPC"].map((errno) => [scene, errno, ...settings] as const)
);

for (const [scene, errno, treeOf, options] of FAILURES) {
  test(`an operation that fails with ${errno} in ${scene} does not stop readers`, async () => {
    const tree = await treeOf();
    const operations = await operationsOf(tree, options);
    for (const [place, operation] of operations.entries()) {
      if (errno === "ENOSPC" && !changesDisk(operation)) continue;
      const label = `operation ${place}, ${operation.kind} ${operation.path}`;
      const { storage, steps, log, append, acknowledged, refusals, reports } = await run(
        tree,
        (at) => at === place ? { errno } : null,
        options,
      );
      storage.hook = null;
      if (!mayRefuse(operation, operations[place - 1])) assert.deepEqual(refusals, [], label);
      if (errno === "ENOSPC" && operation.kind !== "sync" && !stopsWriter(operation)) {
        assert.ok(refusals.every((error) => error instanceof StorageFullError), label);
      }
      const read = (await readAll(log.snapshot)).map(({ batch_id }) => batch_id);
      assert.deepEqual(read, acknowledged, label);
      if (log.poison === null) {
        // Retries the failed seal, one file at a time.
        for (const batchId of ["g", "h", "i"]) {
          steps.resume();
          await append(batchId);
          await untilQuiet(storage);
        }
        assert.deepEqual(acknowledged.slice(-3), ["g", "h", "i"], label);
        assert.ok(log.snapshot.files.length > 2, label);
        const pending = log.snapshot.files.filter(({ path }) => path.startsWith(PENDING_FOLDER));
        assert.deepEqual(pending, [], `${label}: sealed; ${reports.join("; ")}`);
      }
      await log.close();
      // The simulated disk counts a file as open if closing it failed.
      assert.equal(storage.openFiles, operation.kind === "close" ? 1 : 0, label);
      assertHeld(await heldBy(storage.crash()), acknowledged, label);
      assert.ok(reports.length <= 2, `${label}: ${reports.join("; ")}`);
    }
  });
}

for (const errno of ["EIO", "ENOSPC"]) {
  test(`a tail is sealed only after its directory entries are durable (${errno})`, async () => {
    const storage = new SimulatedDisk(await startTree());
    const steps = new SealingSteps({ bounds: BOUNDS });
    const { log } = await openTestLog(storage, steps.on());
    let isStopped = false;
    storage.hook = ({ kind, path }) => {
      // The machine stops before a new manifest is durable.
      const isListed = storage.operations.some((one) =>
        one.kind === "rename" && one.path.startsWith(MANIFEST_FILE)
      );
      isStopped ||= isListed && kind === "syncFolder" && path === ".";
      if (isStopped) return { errno: "EIO" };
      return kind === "syncFolder" && path === PENDING_FOLDER ? { errno } : null;
    };
    await assert.rejects(log.append([preparedBatch("d")]));
    await untilQuiet(storage);
    storage.hook = null;
    // The worst outcome: the manifest survives, but the earlier directory entries do not.
    const left = storage.crash({
      ...SYNCED_ONLY,
      keepsName: ({ paths }) => paths.some((path) => path.startsWith(MANIFEST_FILE)),
    });
    assert.deepEqual(await heldBy(left), BEFORE);
  });
}
