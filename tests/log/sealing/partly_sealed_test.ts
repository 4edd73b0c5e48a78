/**
 * A sealing that ended between two segments of one pending file, at every place where it can end:
 * what clients see, what verify says and what the next sealing makes are as without it. And no
 * folder passes for such a one whose segments and pending file do not fit.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CorruptLogError } from "../../../src/log/storage/errors.ts";
import type { Manifest } from "../../../src/log/segment/manifest.ts";
import type { FailureCode } from "../../../src/log/verify/failure.ts";
import { flipBit, truncateAt } from "../../support/corrupt.ts";
import {
  type CommitParts,
  manifestOf,
  pendingPaths,
  withCommits,
  withManifest,
} from "../../support/forged_log.ts";
import { MixedHistory } from "../../support/mixed_history.ts";
import { observe } from "../../support/observation.ts";
import { sealAll, sealSome } from "../../support/sealing.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { submit } from "../../support/submitted.ts";
import { logTree, openTestLog, readAll } from "../../support/test_log.ts";
import { openTestService } from "../../support/test_service.ts";
import { verifyTree } from "../../support/verifying.ts";

/** Ends a segment with every commit. */
const EACH_COMMIT = { events: 1, bytes: Infinity };

/** The log of a whole history in one tail, closed. */
async function played(): Promise<{ tree: Tree; history: MixedHistory }> {
  const storage = new SimulatedDisk();
  const history = new MixedHistory();
  const { service } = await openTestService(storage);
  for (const part of history.parts) await part(service);
  await service.close();
  return { tree: storage.tree(), history };
}

/** What clients see of a log, before and after it takes more. */
async function seen(storage: SimulatedDisk, history: MixedHistory) {
  const { service, reports } = await openTestService(storage);
  const before = await observe(service, history);
  const events = [{ stream: "s-1", record_key: "more", kind: "upserted", payload: { more: true } }];
  const answers = [
    await submit(service, { source: "more", batch_id: "1", events }),
    await submit(service, { source: "more", batch_id: "1", events }),
  ];
  const after = await observe(service, history);
  await service.close();
  return { before, answers, after, reports };
}

async function assertRight(tree: Tree, events: number, orphans: string[] = []): Promise<void> {
  for (const chain of [false, true]) {
    const { report, failure } = await verifyTree(tree, { chain });
    assert.equal(failure, null, failure?.message);
    assert.deepEqual([report.events_checked, report.orphans], [events, orphans]);
  }
}

test("a sealing that ends after any of its segments changes nothing that can be seen", async () => {
  const { tree, history } = await played();
  const expected = await seen(new SimulatedDisk(tree), history);
  assert.deepEqual(expected.answers.map(({ body }) => body.status), ["committed", "duplicate"]);
  const sealed = new SimulatedDisk(tree);
  const segments = await sealAll(sealed, EACH_COMMIT);
  const events = segments.reduce((sum, segment) => sum + segment.events, 0);
  assert.ok(segments.length > 20, `${segments.length} places to end`);
  for (let count = 1; count < segments.length; count += 9) {
    const storage = new SimulatedDisk(tree);
    await sealSome(storage, count, EACH_COMMIT);
    await assertRight(storage.tree(), events);
    // All that was not sealed is sealed from the same pending file, into the same segments.
    const resumed = new SimulatedDisk(storage.tree());
    await sealAll(resumed, EACH_COMMIT);
    assert.deepEqual(resumed.tree(), sealed.tree(), `after ${count} segments`);
    assert.deepEqual(await seen(storage, history), expected, `after ${count} segments`);
    await assertRight(storage.tree(), events + 1);
    await sealAll(storage, EACH_COMMIT);
    await assertRight(storage.tree(), events + 1);
    assert.deepEqual(pendingPaths(storage.tree()), []);
  }
});

/** Six events in five commits, the third one of two; segments cover the first two commits. */
const COMMITS = [["a"], ["b"], [], ["c", "d"], ["e"], ["f"]];

async function partlySealed(): Promise<Tree> {
  const storage = new SimulatedDisk(await logTree(COMMITS));
  await sealSome(storage, 2, EACH_COMMIT);
  return storage.tree();
}

const TREE = await partlySealed();
const PENDING = pendingPaths(TREE)[0]!;
const MANIFEST = manifestOf(TREE);
const [FIRST, SECOND] = MANIFEST.segments as [Manifest["segments"][0], Manifest["segments"][0]];

function withSegments(...segments: Manifest["segments"]): Tree {
  return withManifest(TREE, { ...MANIFEST, segments });
}

function withPending(change: (commits: CommitParts[]) => CommitParts[]): Tree {
  return withCommits(TREE, PENDING, change);
}

function withFile(path: string, bytes: Uint8Array | null): Tree {
  const tree = new Map(TREE);
  if (bytes === null) tree.delete(path);
  else tree.set(path, bytes);
  return tree;
}

interface Misfit {
  tree: Tree;
  code: FailureCode;
  /** With `--chain`, where that is another one. */
  chainCode?: FailureCode;
  /** Whether only the rows of a segment tell, which an open does not read. */
  opens?: boolean;
}

const MISFITS: Record<string, Misfit> = {
  "the pending file ends with the covered commits": {
    tree: withPending((commits) => commits.slice(0, 3)),
    code: "pending_invalid",
  },
  "the pending file begins behind the covered commits": {
    tree: withPending((commits) => commits.slice(3)),
    code: "pending_invalid",
  },
  "a commit is there again": {
    tree: withPending(([a, b, empty, cd, ...rest]) => [a!, b!, empty!, cd!, cd!, ...rest]),
    code: "order_invalid",
  },
  "a covered commit is there again behind the others": {
    tree: withPending(([a, b, empty, cd, ...rest]) => [a!, b!, empty!, cd!, b!, ...rest]),
    code: "order_invalid",
  },
  "a covered commit does not match its hash": {
    tree: withFile(PENDING, flipBit(TREE.get(PENDING)!, 8 * 400)),
    code: "pending_invalid",
  },
  "the manifest names a segment that is missing": {
    tree: withFile(SECOND.path, null),
    code: "manifest_invalid",
  },
  "the manifest leaves a segment out": {
    tree: withSegments(SECOND),
    code: "manifest_invalid",
  },
  "the manifest says another chain head of the last segment": {
    tree: withSegments(FIRST, { ...SECOND, head: "0".repeat(64) }),
    code: "segment_invalid",
  },
  "the last segment has other bytes": {
    tree: withFile(SECOND.path, flipBit(TREE.get(SECOND.path)!, 100)),
    code: "file_hash_mismatch",
    opens: true,
  },
  "the last segment is cut": {
    tree: withFile(SECOND.path, truncateAt(TREE.get(SECOND.path)!, 100)),
    code: "file_hash_mismatch",
  },
  "the last segment is another one": {
    tree: withFile(SECOND.path, TREE.get(FIRST.path)!),
    code: "file_hash_mismatch",
  },
};

for (const [name, { tree, code, chainCode = code, opens = false }] of Object.entries(MISFITS)) {
  test(`a partly sealed log is refused where ${name}`, async () => {
    assert.equal((await verifyTree(tree, { chain: false })).report.failure, code);
    assert.equal((await verifyTree(tree, { chain: true })).report.failure, chainCode);
    if (opens) return;
    const storage = new SimulatedDisk(tree);
    await assert.rejects(openTestLog(storage), CorruptLogError);
    assert.deepEqual(storage.tree(), new SimulatedDisk(tree).tree(), "nothing was changed");
    assert.equal(storage.openFiles, 0);
  });
}

test("an older manifest over a partly sealed file makes a segment an orphan, and loses nothing", async () => {
  const tree = withSegments(FIRST);
  await assertRight(tree, 6, [SECOND.path]);
  const storage = new SimulatedDisk(tree);
  await sealAll(storage, EACH_COMMIT);
  await assertRight(storage.tree(), 6);
  const { log } = await openTestLog(storage);
  const { log: whole } = await openTestLog(new SimulatedDisk(TREE));
  assert.deepEqual(await readAll(log.snapshot), await readAll(whole.snapshot));
});
