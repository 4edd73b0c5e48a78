import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { checkAhead, type SegmentChecking } from "../../../src/log/verify/segment_checking.ts";
import {
  SEGMENT_THREAD_LOG_BYTES_MIN,
  startSegmentThreads,
} from "../../../src/log/verify/segment_threads.ts";
import type { SegmentEntry } from "../../../src/log/verify/segment_verify.ts";
import {
  areDistinct,
  IdentityList,
  IdentitySet,
} from "../../../src/log/verify/verify_identities.ts";
import { sealCommits, smallBatches } from "../../support/test_segment.ts";

/** Runs `use` with segments of 100 batches each in a folder. */
async function withSegments(
  use: (folder: string, segments: SegmentEntry[]) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "segments-"));
  try {
    const commits = Array.from({ length: 5 }, (_, number) => smallBatches(100, `source-${number}`));
    const { storage, segments } = await sealCommits(commits, { events: 100, bytes: 1e9 });
    const tree = storage.tree();
    await mkdir(folder, { recursive: true });
    for (const { path } of segments) await writeFile(join(folder, path), tree.get(path)!);
    await use(folder, segments);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Entries that say to be large, which is what threads are started for. */
function starting(segments: readonly SegmentEntry[], folder: string, chain: boolean) {
  const large = segments.map((entry) => ({ ...entry, bytes: SEGMENT_THREAD_LOG_BYTES_MIN }));
  const checking = startSegmentThreads(large, { folder, chain });
  assert.ok(checking !== null);
  return checking;
}

const skip = availableParallelism() < 2 ? "one processor" : false;

for (const chain of [false, true]) {
  test(`startSegmentThreads() verifies segments, chain ${chain}`, { skip }, async () => {
    await withSegments(async (folder, segments) => {
      const checking = starting(segments, folder, chain);
      const damaged = { ...segments[3]!, head: "0".repeat(64) };
      const entries = [...segments.slice(0, 3), damaged, segments[4]!];
      const answers = await Promise.all(entries.map((entry) => checking.check(entry)));
      await checking.close();
      const expected = new IdentityList();
      for (let number = 0; number < 100; number++) expected.add("source-2", `batch-${number}`);
      assert.deepEqual(answers[2], expected.words);
      assert.deepEqual(answers.map((answer) => answer === null), [
        false,
        false,
        false,
        true,
        false,
      ]);
    });
  });
}

test("startSegmentThreads() answers null when all threads have ended", { skip }, async () => {
  await withSegments(async (folder, segments) => {
    const chain = false;
    const checking = starting(segments, folder, chain);
    await checking.close();
    const more = [...segments, ...segments, ...segments];
    const answers = await Promise.all(more.map((entry) => checking.check(entry)));
    assert.ok(answers.every((answer) => answer === null));
  });
});

test("startSegmentThreads() gives null for few or small segments", async () => {
  await withSegments((folder, segments) => {
    assert.equal(startSegmentThreads(segments, { folder, chain: false }), null);
    const one = { ...segments[0]!, bytes: SEGMENT_THREAD_LOG_BYTES_MIN };
    assert.equal(startSegmentThreads([one], { folder, chain: false }), null);
    return Promise.resolve();
  });
});

test("checkAhead() asks for segments ahead, and gives them in their order", async () => {
  const { segments } = await sealCommits(
    smallBatches(6).map((batch) => [batch]),
    { events: 1, bytes: 1e9 },
  );
  const asked: string[] = [];
  const checking: SegmentChecking = {
    segmentsAhead: 3,
    check({ path }) {
      asked.push(path);
      return Promise.resolve(path === "2.parquet" ? null : Uint32Array.of(asked.length));
    },
    close: () => Promise.resolve(),
  };
  const given: string[] = [];
  for await (const { entry, identities } of checkAhead(segments, checking)) {
    assert.equal(asked.length, Math.min(6, given.length + 3));
    given.push(entry.path);
    assert.deepEqual(identities, entry.path === "2.parquet" ? null : Uint32Array.of(given.length));
  }
  assert.deepEqual(given, segments.map(({ path }) => path));
  for await (const { identities } of checkAhead(segments, null)) assert.equal(identities, null);
});

test("IdentitySet.addAll() takes all identities of a list, or none", () => {
  const set = new IdentitySet();
  const [first, second] = [new IdentityList(), new IdentityList()];
  for (let number = 0; number < 3000; number++) first.add("shop", `${number}`);
  second.add("shop", "new");
  second.add("shop", "2999");
  assert.ok(set.addAll(first.words));
  assert.ok(!set.addAll(second.words));
  assert.ok(set.add("shop", "new"), "it was not taken");
  assert.ok(!set.add("shop", "0"));
});

test("areDistinct() sees an identity that is in a list twice", () => {
  const list = new IdentityList();
  for (let number = 0; number < 3000; number++) list.add("shop", `${number}`);
  assert.ok(areDistinct(list.words));
  list.add("shop", "1500");
  assert.ok(!areDistinct(list.words));
});
