import assert from "node:assert/strict";
import { test } from "node:test";
import { TAIL_FILE } from "../../../src/log/storage/file_names.ts";
import { flipBit } from "../../support/corrupt.ts";
import { withCommits } from "../../support/forged_log.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { commitOffsets, openTestLog, tailOf, withTail } from "../../support/test_log.ts";
import { verifyTree } from "../../support/verifying.ts";

test("verifyLog() reports the first of many duplicate batches, before other damage", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const names = Array.from({ length: 2000 }, (_, number) => `${number}`);
  await log.append(names.map((name) => preparedBatch(name)));
  await log.append(["other", "new-1234", "new-567", "new-89"].map((name) => preparedBatch(name)));
  await log.append([preparedBatch("last")]);
  await log.close();
  const old = (text: string) => text.replace("new-", "");
  const repeated = withCommits(storage.tree(), TAIL_FILE, ([, second]) => {
    const batches = second!.commit.batches.map((entry) => ({
      ...entry,
      batch_id: old(entry.batch_id),
    }));
    second!.commit = { ...second!.commit, batches };
    second!.lines = second!.lines.map(old);
  });
  const offsets = commitOffsets(tailOf(repeated));
  const damaged = flipBit(tailOf(repeated), 8 * (offsets[2]! + 300));
  for (
    const [tree, codes] of [
      [repeated, []],
      [withTail(repeated, damaged), ["tail_invalid"]],
    ] as const
  ) {
    const { failure, others } = await verifyTree(tree, { chain: false });
    assert.match(failure!.message, /: batch "1234" of source "shop" is committed twice$/);
    assert.deepEqual(others.map(({ code }) => code), codes);
  }
  // Damage takes precedence if it is in the first of the two batches.
  const first = withTail(repeated, flipBit(damaged, 8 * 300));
  assert.equal((await verifyTree(first)).report.failure, "tail_invalid");
});
