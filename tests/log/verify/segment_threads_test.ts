import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { ExpectedSegment } from "../../../src/log/segment/segment_metadata.ts";
import { batchHash } from "../../../src/log/verify/duplicate_batches.ts";
import {
  checkAhead,
  SEGMENT_THREADS_BYTES_MIN,
  type SegmentChecker,
  startSegmentThreads,
} from "../../../src/log/verify/segment_threads.ts";
import { sealCommits, smallBatches } from "../../support/test_segment.ts";

/** Runs `use` with segments of 100 batches each in a folder. */
async function withSegments(
  use: (folder: string, segments: ExpectedSegment[]) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "segments-"));
  try {
    const commits = Array.from({ length: 5 }, (_, number) => smallBatches(100, `source-${number}`));
    const { storage, segments } = await sealCommits(commits, { events: 100, bytes: 1e9 });
    const tree = storage.tree();
    for (const { path } of segments) await writeFile(join(folder, path), tree.get(path)!);
    await use(folder, segments);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Starts threads for these segments as if they were large ones. */
function startThreads(
  segments: readonly ExpectedSegment[],
  folder: string,
  options: { chain: boolean },
): SegmentChecker {
  const large = segments.map((segment) => ({ ...segment, bytes: SEGMENT_THREADS_BYTES_MIN }));
  const checker = startSegmentThreads(large, { folder, ...options });
  assert.ok(checker !== null);
  return checker;
}

const skip = availableParallelism() < 2 ? "one processor" : false;

for (const chain of [false, true]) {
  test(`startSegmentThreads() verifies segments, chain ${chain}`, { skip }, async () => {
    await withSegments(async (folder, segments) => {
      const checker = startThreads(segments, folder, { chain });
      const damaged = { ...segments[3]!, head: "0".repeat(64) };
      const expected = [...segments.slice(0, 3), damaged, segments[4]!];
      const responses = await Promise.all(expected.map((segment) => checker.check(segment)));
      await checker.close();
      const hashes = Array.from(
        { length: 100 },
        (_, number) => batchHash({ source: "source-2", batch_id: `batch-${number}` }),
      );
      assert.deepEqual([...responses[2]!], hashes);
      assert.deepEqual(responses.map((response) => response === null), [
        ...[false, false, false],
        ...[true, false],
      ]);
    });
  });
}

test("startSegmentThreads() responds null when its threads have ended", { skip }, async () => {
  await withSegments(async (folder, segments) => {
    const checker = startThreads(segments, folder, { chain: false });
    const pending = checker.check(segments[0]!);
    await checker.close();
    await pending;
    const responses = await Promise.all(segments.map((segment) => checker.check(segment)));
    assert.ok(responses.every((response) => response === null));
  });
});

test("startSegmentThreads() gives null for few or small segments", async () => {
  await withSegments((folder, segments) => {
    assert.equal(startSegmentThreads(segments, { folder, chain: false }), null);
    const one = { ...segments[0]!, bytes: SEGMENT_THREADS_BYTES_MIN };
    assert.equal(startSegmentThreads([one], { folder, chain: false }), null);
    return Promise.resolve();
  });
});

test("checkAhead() asks for segments ahead, and gives them in their order", async () => {
  const { segments } = await sealCommits(
    smallBatches(6).map((batch) => [batch]),
    { events: 1, bytes: 1e9 },
  );
  const requested: string[] = [];
  const checker: SegmentChecker = {
    segmentsAhead: 3,
    check({ path }) {
      requested.push(path);
      return Promise.resolve(path === "2.parquet" ? null : BigUint64Array.of(BigInt(path[0]!)));
    },
    close: () => Promise.resolve(),
  };
  const given: string[] = [];
  for await (const [expected, hashes] of checkAhead(segments, checker)) {
    assert.equal(requested.length, Math.min(6, given.length + 3));
    const isRight = expected.path !== "2.parquet";
    assert.deepEqual(hashes, isRight ? BigUint64Array.of(BigInt(given.length)) : null);
    given.push(expected.path);
  }
  assert.deepEqual(given, segments.map(({ path }) => path));
  for await (const [, hashes] of checkAhead(segments, null)) assert.equal(hashes, null);
});
