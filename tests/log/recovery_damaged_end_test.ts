/**
 * Regression: any damage at the end of a tail was treated as a torn commit and removed. When an
 * editor had converted the line endings, the whole tail was lost. A crash tears only one commit, so
 * the service refuses a tail with more damage and leaves the repair to the operator.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { CorruptLogError } from "../../src/log/storage/errors.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { commitOffsets, logTree, openTestLog, tailOf, withTail } from "../support/test_log.ts";
import { verifyTree } from "../support/verifying.ts";

/** Damages a byte of the commits at these indices. */
function withDamagedCommits(tail: Buffer, places: number[]): Buffer {
  const damaged = Buffer.from(tail);
  const offsets = commitOffsets(tail);
  for (const place of places) damaged[offsets[place]! + 100]! ^= 1;
  return damaged;
}

const DAMAGES: [name: string, damage: (tail: Buffer) => Buffer][] = [
  ["converted line endings", (tail) => Buffer.from(`${tail}`.replaceAll("\n", "\r\n"))],
  [
    "converted line endings, with the last one missing",
    (tail) => Buffer.from(`${tail}`.trimEnd().replaceAll("\n", "\r\n")),
  ],
  ["the first two commits", (tail) => withDamagedCommits(tail, [0, 1])],
  ["the last two commits", (tail) => withDamagedCommits(tail, [2, 3])],
  ["every commit", (tail) => withDamagedCommits(tail, [0, 1, 2, 3])],
  [
    "a damaged commit and a truncated one",
    (tail) => withDamagedCommits(tail, [1]).subarray(0, commitOffsets(tail)[2]! + 40),
  ],
];

for (const [name, damage] of DAMAGES) {
  for (const end of ["killed", "shut down"]) {
    test(`openLog() refuses damage: ${name}, in a log that was ${end}`, async () => {
      const last = end === "killed" ? ["d", "e"] : [];
      const tree = await logTree([["a"], ["b"], ["c"], last]);
      const damaged = withTail(tree, damage(tailOf(tree)));
      const storage = new SimulatedDisk(damaged);
      await assert.rejects(openTestLog(storage), (error) => {
        assert.ok(error instanceof CorruptLogError);
        assert.match(error.message, /another commit begins at byte \d+/);
        return true;
      });
      assert.deepEqual(storage.tree(), damaged, "nothing was changed");
      assert.equal((await verifyTree(damaged, { chain: false })).report.failure, "tail_invalid");
    });
  }
}
