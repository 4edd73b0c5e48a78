/**
 * Files that do not belong together, because one was lost or an older copy was restored. Each was
 * once taken for a log that a crash had left: history then forked or had a hole.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  MANIFEST_FILE,
  parseSegmentPath,
  PENDING_FOLDER,
  SEGMENTS_FOLDER,
  TAIL_FILE,
  TAIL_TEMPORARY_FILE,
} from "../../src/log/storage/file_names.ts";
import { pendingPaths, withFile, without } from "../support/forged_log.ts";
import { rotateOnly, sealAll, SMALL_SEGMENTS } from "../support/sealing.ts";
import { SimulatedDisk, type Tree } from "../support/simulated_disk.ts";
import { verifyTree } from "../support/verifying.ts";
import {
  appendTo,
  assertRefused,
  eventsOf,
  logTree,
  readBack,
  tailOf,
  withTail,
} from "../support/test_log.ts";

/** Asserts that a writer and `verify`, with and without `chain`, refuse a log. */
async function assertBothRefuse(
  tree: Tree,
  codes: { byDefault: string; byChain: string },
  label: string,
): Promise<void> {
  await assertRefused(tree, label);
  for (const [chain, code] of [[false, codes.byDefault], [true, codes.byChain]] as const) {
    const { report } = await verifyTree(tree, { chain });
    assert.equal(report.failure, code, `${label}, ${chain ? "with" : "without"} chain`);
  }
}

const OLD_MANIFEST = { byDefault: "manifest_invalid", byChain: "manifest_invalid" };

test("openLog() and verifyLog() refuse a manifest older than the segments beside it", async () => {
  const storage = new SimulatedDisk();
  const manifests: Uint8Array[] = [];
  for (const batchId of ["a", "b", "c"]) {
    await appendTo(storage, batchId);
    manifests.push(storage.contents(MANIFEST_FILE));
    await sealAll(storage);
  }
  const ends: [string, () => Promise<void>][] = [
    ["an empty tail", () => Promise.resolve()],
    ["a tail", () => appendTo(storage, "d")],
    ["a pending file", () => rotateOnly(storage)],
    ["a pending file and a tail", () => appendTo(storage, "e")],
  ];
  for (const [end, go] of ends) {
    await go();
    for (const [number, manifest] of manifests.entries()) {
      const older = withFile(storage.tree(), MANIFEST_FILE, manifest);
      await assertBothRefuse(older, OLD_MANIFEST, `manifest ${number}, then ${end}`);
    }
    await eventsOf(new SimulatedDisk(storage.tree()));
  }
});

test("openLog() refuses a log without its manifest", async () => {
  const id = "019b76da-a800-7001-8203-040506070809";
  const empty = without(await logTree([]), MANIFEST_FILE);
  const held: Tree[] = [
    withFile(empty, TAIL_FILE, tailOf(await logTree([["a"]]))),
    withFile(empty, TAIL_FILE, Buffer.from("x")),
    withFile(empty, `${PENDING_FOLDER}/${id}_${id}.ndjson`, Buffer.alloc(0)),
    withFile(empty, `${SEGMENTS_FOLDER}/x.parquet`, Buffer.alloc(0)),
  ];
  for (const tree of held) await assertRefused(tree, [...tree.keys()].join());
});

test("openLog() and verifyLog() refuse a segment that the tail holds only in part", async () => {
  const storage = new SimulatedDisk();
  await appendTo(storage, "a");
  const { tail, manifest } = {
    tail: storage.contents(TAIL_FILE),
    manifest: storage.contents(MANIFEST_FILE),
  };
  await appendTo(storage, "b");
  await sealAll(storage);
  const mixed = withFile(withTail(storage.tree(), tail), MANIFEST_FILE, manifest);
  await assertBothRefuse(mixed, OLD_MANIFEST, "the segment has more");
});

/** A log with two segments, three pending files and a tail. */
async function fullTree(): Promise<Tree> {
  const storage = new SimulatedDisk();
  await appendTo(storage, "s1", "s2", "s3", "s4");
  await sealAll(storage, SMALL_SEGMENTS);
  for (const batchId of ["p1", "p2", "p3"]) {
    await appendTo(storage, batchId);
    await rotateOnly(storage);
  }
  await appendTo(storage, "t");
  return storage.tree();
}

test("openLog() and verifyLog() refuse a log from which a pending file is missing", async () => {
  const tree = await fullTree();
  const paths = pendingPaths(tree);
  assert.equal(paths.length, 3);
  for (const [place, path] of paths.entries()) {
    const code = place < 2 ? "pending_invalid" : "tail_invalid";
    const codes = { byDefault: code, byChain: "chain_head_mismatch" };
    await assertBothRefuse(without(tree, path), codes, `pending file ${place}`);
  }
});

test("openLog() and verifyLog() refuse the tail of another log with later ids", async () => {
  const other = new SimulatedDisk();
  await appendTo(other, ...Array.from({ length: 20 }, (_, number) => `o${number}`));
  await rotateOnly(other);
  await appendTo(other, "x");
  const mixed = withTail(await fullTree(), other.contents(TAIL_FILE));
  const codes = { byDefault: "tail_invalid", byChain: "chain_head_mismatch" };
  await assertBothRefuse(mixed, codes, "another tail");
});

test("openLog() and verifyLog() refuse a log without a tail, unless a rotation was interrupted", async () => {
  const tree = without(await fullTree(), TAIL_FILE);
  const codes = { byDefault: "tail_invalid", byChain: "tail_invalid" };
  await assertBothRefuse(tree, codes, "no tail");
  const sealed = new Map([...tree].filter(([path]) => !path.startsWith("pending/")));
  for (const held of [sealed, withFile(sealed, TAIL_TEMPORARY_FILE, Buffer.alloc(0))]) {
    await assertBothRefuse(held, codes, "no tail and no pending file");
  }

  const storage = new SimulatedDisk(withFile(tree, TAIL_TEMPORARY_FILE, Buffer.alloc(0)));
  assert.equal((await eventsOf(storage)).length, 7);
  assert.deepEqual(
    [...storage.crash().tree().keys()].filter((path) => path.startsWith("tail")),
    [TAIL_FILE],
  );
});

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

test("openLog() keeps and reports an unlisted segment that it does not need", async () => {
  const { tree, segment, pending, sealed } = await unlistedTree();
  const name = parseSegmentPath(segment)!;
  const earlier = segment.replace(name.firstEventId, "00000000-0000-7000-8000-000000000000");
  const bytes = Buffer.from("x");
  const inTail = withTail(without(tree, pending), Buffer.from(tree.get(pending)!));
  const cases: [Tree, string][] = [
    [inTail, segment],
    [withFile(sealed, earlier, bytes), earlier],
  ];
  for (const [held, path] of cases) {
    const storage = new SimulatedDisk(held);
    const { reports } = await readBack(storage);
    assert.deepEqual(reports, [`${path}: not in the manifest, left in place`]);
    assert.ok(storage.crash().tree().has(path));
  }
  const foreign = new SimulatedDisk(withFile(tree, "segments/unknown", bytes));
  assert.deepEqual((await readBack(foreign)).reports, []);
  assert.ok(foreign.crash().tree().has("segments/unknown"));
});
