/**
 * Copies of a log whose writer appends, rotates and seals meanwhile. Every copy verifies, holds
 * what was acknowledged before it began, and holds nothing that a power failure at its end would
 * take from the original.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { RESERVING_TAIL_BYTES_MIN } from "../../src/limits.ts";
import type { Log } from "../../src/log/log.ts";
import { type CopiedLog, copyLog, type CopyOptions } from "../../src/log/log_copy.ts";
import { EMPTY_MANIFEST, encodeManifest } from "../../src/log/segment/manifest.ts";
import { CorruptLogError } from "../../src/log/storage/errors.ts";
import type { Storage } from "../../src/log/storage/storage.ts";
import { flipBit } from "../support/corrupt.ts";
import { preparedBatch } from "../support/prepared.ts";
import { SealingSteps, untilQuiet } from "../support/sealing_steps.ts";
import { SYNCED_ONLY } from "../support/simulated_crash.ts";
import { SimulatedDisk, type Tree } from "../support/simulated_disk.ts";
import { failNth, gateAt, noRoomAfter } from "../support/storage_faults.ts";
import { batchIdsOf, largeTailTree, openTestLog, readBack } from "../support/test_log.ts";
import { fullLog, logOf, verifyStorage } from "../support/verifying.ts";

type Knows = CopyOptions["durability"];

/** No segment is in an older copy. */
const IS_LINKED = false;
const NOT_SERVED: Knows = () => Promise.resolve("not served");

/** The answers about the last commit that a copy may get. */
const KNOWN: Record<string, (log: Log) => Knows> = {
  "the frontier": (log) => () => Promise.resolve({ through: log.snapshot.frontier }),
  "that nothing serves": () => NOT_SERVED,
  "nothing": () => () => Promise.resolve("unknown"),
};

/** Three small commits exceed this. */
const ROTATE_BYTES = 2000;

interface Copy extends CopiedLog {
  disk: SimulatedDisk;
  reports: string[];
}

async function copyOf(
  from: Storage,
  durability: Knows,
  disk: SimulatedDisk = new SimulatedDisk(),
): Promise<Copy> {
  const reports: string[] = [];
  const copied = await copyLog(from, disk, {
    durability,
    link: () => Promise.resolve(IS_LINKED),
    report: (line) => void reports.push(line),
    onProgress: () => {},
    betweenChunks: () => {},
  });
  return { ...copied, disk, reports };
}

/** Verifies a copy. @returns its batches. */
async function batchesOf({ disk, frontier, head, events, segments }: Copy): Promise<string[]> {
  assert.ok(disk.isDurable, "a crash changes nothing in the copy");
  const verified = await verifyStorage(disk);
  const { orphans, remnants, segments_checked, events_checked } = verified.report;
  assert.equal(verified.failure, null);
  assert.deepEqual([orphans, remnants], [[], []]);
  assert.deepEqual([segments_checked, events_checked], [segments, events]);
  assert.deepEqual([verified.lastEventId, verified.head], [frontier, head]);
  return await batchIdsOf(new SimulatedDisk(disk.tree()));
}

/** Asserts that a copy is a valid state of the log between its start and its end. */
async function assertCopy(from: SimulatedDisk, copy: Copy, acknowledged: string[]): Promise<void> {
  const survivors = (await readBack(from.crash(SYNCED_ONLY))).events.map((event) => event.batch_id);
  const batches = await batchesOf(copy);
  assert.deepEqual(batches, survivors.slice(0, batches.length), "only what is durable");
  assert.deepEqual(
    batches.slice(0, acknowledged.length),
    acknowledged,
    "all that was acknowledged",
  );
}

/** A log with a segment, a pending file and two commits in its tail, and its batches. */
async function mixedTree(): Promise<Tree> {
  const disk = new SimulatedDisk();
  const steps = new SealingSteps({ rotateBytes: ROTATE_BYTES });
  const { log } = await openTestLog(disk, steps.on());
  const [sealed, unsealed] = [["1", "2", "3", "4"], ["5", "6", "7"]];
  for (const batchId of sealed) await log.append([preparedBatch(batchId)]);
  await untilQuiet(disk);
  steps.beforeMake = () => Promise.reject(new Error("not yet"));
  for (const batchId of unsealed) await log.append([preparedBatch(batchId)]);
  await untilQuiet(disk);
  assert.deepEqual([log.size.segments, log.size.pending_files], [1, 1]);
  const tree = disk.tree();
  await log.close();
  return tree;
}

const MIXED = await mixedTree();

/** Opens the mixed log. Its pending file is sealed when the test calls `seal()`. */
async function openMixed() {
  const disk = new SimulatedDisk(MIXED);
  const steps = new SealingSteps({ rotateBytes: ROTATE_BYTES });
  let isHeld = true;
  steps.beforeMake = () => {
    if (isHeld) throw new Error("not yet");
  };
  const { log } = await openTestLog(disk, steps.on());
  const acknowledged = ["1", "2", "3", "4", "5", "6", "7"];
  const append = async (batchId: string) => {
    await log.append([preparedBatch(batchId)]);
    acknowledged.push(batchId);
  };
  const seal = async () => {
    isHeld = false;
    steps.resume();
    await untilQuiet(disk);
  };
  return { disk, log, acknowledged, append, seal };
}

type Mixed = Awaited<ReturnType<typeof openMixed>>;

/** What a writer does at one moment of a copy. */
const WRITES: Record<string, (mixed: Mixed) => Promise<void>> = {
  "appends": ({ append }) => append("later"),
  "rotates": async ({ append }) => {
    for (const batchId of ["8", "9", "10"]) await append(batchId);
  },
  "seals": ({ seal }) => seal(),
  "rotates and seals": async ({ append, seal }) => {
    for (const batchId of ["8", "9", "10"]) await append(batchId);
    await seal();
  },
};

/** A storage that calls `before` before each operation. */
function steppedStorage(storage: Storage, before: () => Promise<void>): Storage {
  return {
    ...storage,
    list: (folder) => before().then(() => storage.list(folder)),
    open: async (path, mode) => {
      await before();
      const file = await storage.open(path, mode);
      return {
        ...file,
        read: (into, position) => before().then(() => file.read(into, position)),
        size: () => before().then(() => file.size()),
        sync: () => before().then(() => file.sync()),
        close: () => file.close(),
      };
    },
  };
}

for (const [what, write] of Object.entries(WRITES)) {
  test(`copyLog() copies a valid state if a writer ${what} before any one operation`, async () => {
    let isLast = false;
    for (let moment = 0; !isLast; moment++) {
      const mixed = await openMixed();
      const { disk, log, acknowledged } = mixed;
      const before = [...acknowledged];
      let operations = 0;
      const stepped = steppedStorage(disk, async () => {
        if (operations++ === moment) await write(mixed);
      });
      const copy = await copyOf(stepped, KNOWN["the frontier"]!(log));
      isLast = operations <= moment;
      await assertCopy(disk, copy, before);
      await log.close();
    }
  });
}

for (const [turn, told] of Object.keys(KNOWN).entries()) {
  test(`copyLog() copies a valid state before operations of a writer; told ${told}`, async () => {
    let isLast = false;
    for (let moment = turn; !isLast; moment += told === "the frontier" ? 2 : 5) {
      const mixed = await openMixed();
      const { disk, log, acknowledged } = mixed;
      let operations = 0;
      let copy: Copy | null = null;
      disk.hook = async () => {
        if (operations++ !== moment) return null;
        disk.hook = null;
        const before = [...acknowledged];
        copy = await copyOf(disk, KNOWN[told]!(log));
        // The last commit counts only if it is known to be durable.
        await assertCopy(disk, copy, told === "nothing" ? before.slice(0, -1) : before);
        return null;
      };
      await WRITES["rotates and seals"]!(mixed);
      isLast = copy === null;
      disk.hook = null;
      await log.close();
    }
  });
}

test("copyLog() leaves out a commit that is being synced, and says so if nobody can tell", async () => {
  const disk = new SimulatedDisk();
  const { log } = await openTestLog(disk);
  await log.append([preparedBatch("durable")]);
  const gate = gateAt("sync");
  disk.hook = gate.hook;
  const appending = log.append([preparedBatch("in flight")]);
  await gate.reached;
  for (const told of ["the frontier", "nothing"]) {
    const copy = await copyOf(disk, KNOWN[told]!(log));
    assert.deepEqual(await batchesOf(copy), ["durable"]);
    assert.deepEqual(copy.reports.length, told === "nothing" ? 1 : 0);
  }
  gate.open();
  await appending;
  const copy = await copyOf(disk, KNOWN["the frontier"]!(log));
  assert.deepEqual(await batchesOf(copy), ["durable", "in flight"]);
  await log.close();
});

test("copyLog() syncs the tail of a dead service, and leaves the last commit out if it can't", async () => {
  const disk = new SimulatedDisk();
  const { log } = await openTestLog(disk);
  await log.append([preparedBatch("durable")]);
  const gate = gateAt("sync");
  disk.hook = gate.hook;
  log.append([preparedBatch("in flight")]).catch(() => {});
  await gate.reached;
  // The process dies here.
  disk.hook = failNth("sync", 1, { errno: "EIO" });
  const without = await copyOf(disk, NOT_SERVED);
  assert.deepEqual(await batchesOf(without), ["durable"]);
  assert.match(without.reports.join(), /left out its last commit/);
  const dead = new SimulatedDisk(disk.tree());
  await assertCopy(dead, await copyOf(dead, NOT_SERVED), ["durable"]);
});

test("copyLog() leaves out reserved space and a commit that is half written", async () => {
  const disk = new SimulatedDisk(await largeTailTree());
  const { log } = await openTestLog(disk);
  await log.append([preparedBatch("small")]);
  const reserved = disk.contents("tail.ndjson").length;
  assert.ok(reserved > 2 * RESERVING_TAIL_BYTES_MIN);
  const knows = KNOWN["the frontier"]!(log);
  const copy = await copyOf(disk, knows);
  assert.deepEqual(await batchesOf(copy), ["large", "small"]);
  assert.ok(copy.disk.contents("tail.ndjson").length < reserved);

  const half = new SimulatedDisk(disk.tree());
  const tail = await half.open("tail.ndjson", "write");
  await tail.truncate(copy.disk.contents("tail.ndjson").length - 1);
  const torn = await copyOf(half, NOT_SERVED);
  assert.deepEqual(await batchesOf(torn), ["large"]);
  await log.close();
});

test("copyLog() copies a log without a writer, and one that was never written", async () => {
  const disk = new SimulatedDisk(await fullLog());
  const whole = await copyOf(disk, NOT_SERVED);
  assert.equal(whole.events, 46);
  assert.deepEqual(await batchesOf(whole), await batchIdsOf(new SimulatedDisk(disk.tree())));
  for (const [path, bytes] of whole.disk.tree()) assert.deepEqual(bytes, disk.tree().get(path));
  const empty = await copyOf(new SimulatedDisk(), NOT_SERVED);
  assert.deepEqual([empty.frontier, empty.events, empty.disk.tree().size], [null, 0, 0]);
});

test("copyLog() refuses a damaged file, an older manifest and a missing tail", async () => {
  const tree = await fullLog();
  for (const [path, bytes] of tree) {
    if (bytes === null || path === ".lock") continue;
    const disk = new SimulatedDisk(new Map(tree).set(path, flipBit(bytes, 800)));
    await assert.rejects(copyOf(disk, NOT_SERVED), CorruptLogError, path);
  }
  const older = (await logOf({ segments: true })).set(
    "manifest.json",
    encodeManifest(EMPTY_MANIFEST),
  );
  await assert.rejects(
    copyOf(new SimulatedDisk(older), NOT_SERVED),
    /manifest\.json: does not list the next segment/,
  );
  const headless = new Map(tree);
  headless.delete("tail.ndjson");
  await assert.rejects(
    copyOf(new SimulatedDisk(headless), NOT_SERVED),
    /tail\.ndjson: is missing/,
  );
});

test("copyLog() rejects if the disk of the copy is full", async () => {
  const from = new SimulatedDisk(await fullLog());
  const into = new SimulatedDisk();
  into.hook = noRoomAfter(2000);
  await assert.rejects(copyOf(from, NOT_SERVED, into), /ENOSPC/);
  assert.equal(from.openFiles + into.openFiles, 0);
});
