/** Rotated tails under `pending/` are read in order and never repaired. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { pendingPath } from "../../src/log/storage/file_names.ts";
import { appendBytes, flipBit, repairFraming, truncateAt } from "../support/corrupt.ts";
import { manifestOf, withFile, withManifest, without } from "../support/forged_log.ts";
import { SimulatedDisk, type Tree } from "../support/simulated_disk.ts";
import { sealAll } from "../support/sealing.ts";
import { verifyTree } from "../support/verifying.ts";
import {
  appendTo,
  assertRefused,
  logTree,
  openTestLog,
  tailOf,
  unsealedBatches,
  withTail,
} from "../support/test_log.ts";

/** Rotates the tail. */
async function rotate(tree: Tree): Promise<{ tree: Tree; path: string }> {
  const { log } = await openTestLog(new SimulatedDisk(tree));
  const inTail = (await unsealedBatches(log)).filter((entry) =>
    tailOf(tree).includes(entry.first_event_id)
  );
  const path = pendingPath(inTail[0]!.first_event_id, inTail.at(-1)!.last_event_id);
  return { tree: withTail(tree, Buffer.alloc(0)).set(path, tailOf(tree)), path };
}

async function withBatch(tree: Tree, batchId: string): Promise<Tree> {
  const storage = new SimulatedDisk(tree);
  await appendTo(storage, batchId);
  return storage.tree();
}

test("openLog() refuses any damage to a pending file, even at its end", async () => {
  const { tree, path } = await rotate(await logTree([["a"], ["b"]]));
  const bytes = Buffer.from(tree.get(path)!);
  for (let size = 0; size < bytes.length; size++) {
    await assertRefused(new Map(tree).set(path, truncateAt(bytes, size)), `truncated at ${size}`);
  }
  for (let at = 0; at < bytes.length; at++) {
    const damaged = flipBit(bytes, at * 8 + at % 8);
    await assertRefused(new Map(tree).set(path, damaged), `changed at ${at}`);
  }
  for (const more of ["\n", "x", Buffer.alloc(4096), bytes]) {
    await assertRefused(new Map(tree).set(path, appendBytes(bytes, more)), "with trailing bytes");
  }
});

test("openLog() refuses a commit that exceeds the limit or does not end in LF", async () => {
  const { tree, path } = await rotate(await logTree([["a"]]));
  const text = Buffer.from(tree.get(path)!).toString();
  const commits: [commit: string, fault: RegExp][] = [
    [text.replace(/"bytes":\d+/, `"bytes":${2 ** 40}`), /no commit header/],
    [text.slice(0, -1) + "x", /does not match its sha256/],
  ];
  for (const [commit, fault] of commits) {
    const storage = new SimulatedDisk(withFile(tree, path, repairFraming(Buffer.from(commit))));
    await assert.rejects(openTestLog(storage), fault);
  }
});

test("openLog() refuses a pending file before it repairs the tail", async () => {
  const rotated = await rotate(await logTree([["a"], ["b"]]));
  const tree = await withBatch(rotated.tree, "c");
  const damaged = flipBit(tree.get(rotated.path)!, 800);
  const cutTail = truncateAt(tailOf(tree), 100);
  await assertRefused(withTail(tree, cutTail).set(rotated.path, damaged), "both damaged");
});

test("openLog() refuses a pending file whose name does not match the range of its events", async () => {
  const { tree, path } = await rotate(await logTree([["a"], ["b"]]));
  const bytes = tree.get(path)!;
  const [first = "", last = ""] = path.slice("pending/".length, -".ndjson".length).split("_");
  const names = [[first, first], [last, last], [last, first]] as const;
  for (const name of [...names.map((ends) => pendingPath(...ends)), "pending/a copy.ndjson"]) {
    await assertRefused(withFile(without(tree, path), name, bytes), name);
  }
});

test("openLog() refuses an event stored in two files", async () => {
  const { tree, path } = await rotate(await logTree([["a"], ["b"]]));
  await assertRefused(withTail(tree, tree.get(path)!), "the tail repeats the pending file");
  const longer = await rotate(await logTree([["a"], ["b"], ["c"]]));
  await assertRefused(new Map([...tree, ...longer.tree]), "two pending files overlap");
});

test("openLog() refuses a batch committed twice, in one file or in two", async () => {
  const { tree } = await rotate(await logTree([["a"]]));
  const logs = [
    await logTree([["a"], ["b"]]),
    await logTree([["a", "b"]]),
    await withBatch(tree, "b"),
  ];
  for (const log of logs) {
    const tail = tailOf(log).toString().replaceAll('"batch_id":"b"', '"batch_id":"a"');
    const storage = new SimulatedDisk(withTail(log, repairFraming(Buffer.from(tail))));
    await assert.rejects(openTestLog(storage), /batch a of source shop is committed twice/);
  }
});

test("openLog() and verifyLog() refuse segments that cover part of a pending file", async () => {
  const { tree, path } = await rotate(await logTree([["a"], ["b"], ["c"]]));
  const storage = new SimulatedDisk(tree);
  await sealAll(storage, { events: 1, bytes: Infinity });
  const manifest = manifestOf(storage.tree());
  assert.equal(manifest.segments.length, 3);
  for (const count of [1, 2]) {
    const segments = manifest.segments.slice(0, count);
    const partly = withManifest(storage.tree(), { ...manifest, segments }).set(
      path,
      tree.get(path)!,
    );
    await assertRefused(partly, `${count} segments`);
    assert.equal((await verifyTree(partly, { chain: false })).report.failure, "order_invalid");
  }
});

test("openLog() and verifyLog() refuse a pending file that another log's segments span", async () => {
  const common = new SimulatedDisk(await logTree([["common"]]));
  await sealAll(common);
  const { tree: pending } = await rotate(await withBatch(common.tree(), "unsealed"));
  const other = new SimulatedDisk(await withBatch(await withBatch(common.tree(), "a"), "b"));
  await sealAll(other);
  const tree = new Map([...pending, ...other.tree()]);
  await assertRefused(tree, "two logs");
  assert.equal((await verifyTree(tree, { chain: false })).report.failure, "order_invalid");
});
