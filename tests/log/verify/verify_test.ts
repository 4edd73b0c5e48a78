import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  MANIFEST_TEMPORARY_FILE,
  SEGMENT_TEMPORARY_FILE,
  TAIL_FILE,
} from "../../../src/log/storage/file_names.ts";
import { UnsupportedFormatError } from "../../../src/log/storage/errors.ts";
import { verifyLog } from "../../../src/log/verify/verify.ts";
import { appendBytes, truncateAt } from "../../support/corrupt.ts";
import { manifestOf, pendingPaths, withManifest } from "../../support/forged_log.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { sealAll } from "../../support/sealing.ts";
import { gateAt } from "../../support/storage_faults.ts";
import { commitOffsets, openTestLog, tailOf, withTail } from "../../support/test_log.ts";
import { fullLog, logOf, verifyStorage, verifyTree } from "../../support/verifying.ts";

const HEALTHY = {
  ok: true,
  chain_checked: true,
  segments_checked: 0,
  pending_checked: 0,
  events_checked: 0,
  orphans: [],
  remnants: [],
  failure: null,
};

/** Verifies in both ways. */
async function assertHealthy(tree: Tree, expected: Partial<typeof HEALTHY>): Promise<void> {
  for (const chain of [false, true]) {
    const { report, failure } = await verifyTree(tree, { chain });
    assert.equal(failure, null);
    assert.deepEqual(report, { ...HEALTHY, ...expected, chain_checked: chain });
  }
}

test("verifyLog() reports members in the order of the specification", async () => {
  const { report } = await verifyTree(await fullLog());
  assert.deepEqual(Object.keys(report), Object.keys(HEALTHY));
});

test("verifyLog() finds an empty folder in order, as init leaves it", async () => {
  await assertHealthy(new Map(), {});
  await assertHealthy(new Map([[".lock", Buffer.alloc(0)]]), {});
});

test("verifyLog() finds logs of each form in order", async () => {
  await assertHealthy(await logOf({}), {});
  await assertHealthy(await logOf({ tailCommits: 2 }), { events_checked: 10 });
  await assertHealthy(await logOf({ pendingFiles: 1 }), { pending_checked: 1, events_checked: 10 });
  await assertHealthy(await logOf({ segments: true }), { segments_checked: 3, events_checked: 11 });
  await assertHealthy(await fullLog(), {
    segments_checked: 3,
    pending_checked: 2,
    events_checked: 46,
  });
});

test("verifyLog() lists what a first start that was cut off has left as remnants", async () => {
  const tree: Tree = new Map([["pending", null], ["segments", null]]);
  await assertHealthy(tree, { remnants: ["pending", "segments"] as never });
  tree.set(TAIL_FILE, Buffer.alloc(0)).set(MANIFEST_TEMPORARY_FILE, Buffer.from("{"));
  await assertHealthy(tree, {
    remnants: ["pending", "segments", TAIL_FILE] as never,
    orphans: [MANIFEST_TEMPORARY_FILE] as never,
  });
});

test("verifyLog() lists a commit that was cut off as a remnant", async () => {
  const tree = await logOf({ tailCommits: 2 });
  const tail = tailOf(tree);
  const [, second, end] = commitOffsets(tail);
  for (const sizeBytes of [second! + 1, second! + 100, end! - 1]) {
    const cut = withTail(tree, truncateAt(tail, sizeBytes));
    await assertHealthy(cut, { events_checked: 5, remnants: [TAIL_FILE] as never });
  }
  const more = withTail(tree, appendBytes(tail, "\0".repeat(100)));
  await assertHealthy(more, { events_checked: 10, remnants: [TAIL_FILE] as never });
});

test("verifyLog() lists the tail that a rotation has not made yet as a remnant", async () => {
  const tree = await logOf({ pendingFiles: 1 });
  tree.delete(TAIL_FILE);
  await assertHealthy(tree, {
    pending_checked: 1,
    events_checked: 10,
    remnants: [TAIL_FILE] as never,
  });
});

test("verifyLog() lists leftovers of a sealing as orphans", async () => {
  const storage = new SimulatedDisk(await logOf({ pendingFiles: 1 }));
  const [pending] = pendingPaths(storage.tree());
  const before = storage.tree();
  await sealAll(storage);
  const after = storage.tree();
  const { path } = manifestOf(after).segments[0]!;
  after.set(pending!, before.get(pending!)!);
  after.set(SEGMENT_TEMPORARY_FILE, Buffer.from("PAR1"));
  after.set(MANIFEST_TEMPORARY_FILE, Buffer.from("{"));
  await assertHealthy(after, {
    segments_checked: 1,
    events_checked: 10,
    orphans: [MANIFEST_TEMPORARY_FILE, pending!, SEGMENT_TEMPORARY_FILE] as never,
  });
  const unlisted = new Map(before).set(path, after.get(path)!);
  await assertHealthy(unlisted, {
    pending_checked: 1,
    events_checked: 10,
    orphans: [path] as never,
  });
});

test("verifyLog() leaves out names that are none of its own", async () => {
  const tree = await fullLog();
  for (const name of ["notes.txt", "pending/notes.txt", "segments/other.parquet"]) {
    tree.set(name, Buffer.from("?"));
  }
  const { report } = await verifyTree(tree);
  assert.deepEqual([report.ok, report.orphans], [true, []]);
});

test("verifyLog() refuses a log that only a newer program may read", async () => {
  const tree = await fullLog();
  const newer = withManifest(tree, { ...manifestOf(tree), min_reader: 2, min_writer: 2 });
  await assert.rejects(verifyTree(newer), UnsupportedFormatError);
  const readable = withManifest(tree, { ...manifestOf(tree), min_writer: 2 });
  assert.ok((await verifyTree(readable)).report.ok);
});

test("verifyLog() hands on what the disk says", async () => {
  const storage = new SimulatedDisk(await fullLog());
  storage.hook = ({ kind, path }) =>
    kind === "read" && path === TAIL_FILE ? { errno: "EIO" } : null;
  await assert.rejects(verifyLog(storage, { chain: true }), /EIO/);
  assert.equal(storage.openFiles, 0);
});

test("verifyLog() tells its progress", async () => {
  const seen: number[] = [];
  const storage = new SimulatedDisk(await logOf({ segments: true, tailCommits: 1 }));
  await verifyLog(storage, { chain: false, onProgress: (events) => void seen.push(events) });
  assert.deepEqual(seen, [3, 8, 11, 16]);
});

test("verifyLog() finds a log in order while its writer appends", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  for (let number = 0; number < 5; number++) await log.append([preparedBatch(`${number}`)]);
  const held = gateAt("write");
  storage.hook = held.hook;
  const appending = log.append([preparedBatch("held")]);
  await held.reached;
  const { report } = await verifyStorage(storage);
  assert.deepEqual([report.ok, report.events_checked, report.remnants], [true, 5, []]);
  held.open();
  await appending;
  assert.equal((await verifyStorage(storage)).report.events_checked, 6);
  await log.close();
});

test("verifyLog() takes the tail at the size that it has first", async () => {
  const storage = new SimulatedDisk(await logOf({ tailCommits: 2 }));
  const { log } = await openTestLog(storage);
  const held = gateAt("read");
  storage.hook = (operation) => operation.path === TAIL_FILE ? held.hook(operation) : null;
  const verifying = verifyLog(storage, { chain: true });
  await held.reached;
  await log.append([preparedBatch("later")]);
  held.open();
  assert.deepEqual((await verifying).report, { ...HEALTHY, events_checked: 10 });
  await log.close();
});

for (const step of ["list", "open", "size", "read"] as const) {
  test(`verifyLog() starts again when a sealing moves files before any ${step}`, async () => {
    const made = await logOf({ segments: true, tailCommits: 2 });
    for (let nth = 1; nth <= 60; nth++) {
      const storage = new SimulatedDisk(made);
      let count = 0;
      let sealing: Promise<unknown> | null = null;
      storage.hook = async ({ kind }) => {
        if (sealing !== null || kind !== step || ++count < nth) return null;
        sealing = Promise.resolve();
        const { log } = await openTestLog(storage);
        await log.seal(() => {});
        await log.close();
        return null;
      };
      const { report, failure } = await verifyLog(storage, { chain: true });
      assert.equal(failure, null, failure?.message);
      assert.equal(report.events_checked, 21);
      if (sealing === null) return;
    }
  });
}

test("verifyLog() gives up on a log whose files change all the time", async () => {
  const storage = new SimulatedDisk(await logOf({}));
  let number = 0;
  storage.hook = async ({ kind, path }) => {
    if (kind !== "open" || path !== TAIL_FILE) return null;
    await (await storage.open(`pending/${number++}.ndjson`, "create")).close();
    return null;
  };
  await assert.rejects(
    verifyLog(storage, { chain: true }),
    /changed while it was being listed; run verify again$/,
  );
});
