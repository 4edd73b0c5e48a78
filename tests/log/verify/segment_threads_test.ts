import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { withFolder } from "../../../tools/support/program.ts";
import { flipBit } from "../../support/corrupt.ts";
import { manifestOf } from "../../support/forged_log.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { sealAll, SMALL_SEGMENTS } from "../../support/sealing.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { appendTo } from "../../support/test_log.ts";
import { verifyStorage } from "../../support/verifying.ts";

const skip = availableParallelism() < 2 ? "needs at least two vCPUs" : false;

/** A log whose segments are large enough to be verified on threads. One is damaged. */
async function largeLog(): Promise<Tree> {
  const storage = new SimulatedDisk();
  for (let number = 0; number < 4; number++) {
    const payload = randomBytes(2 * 1024 * 1024).toString("base64");
    await appendTo(storage, preparedBatch(`${number}`, { events: [{ payload }, {}, {}] }));
  }
  const segments = await sealAll(storage, SMALL_SEGMENTS);
  const tree = storage.tree();
  return tree.set(segments[2]!.path, flipBit(tree.get(segments[2]!.path)!, 1000));
}

test(
  "verifyLog() verifies segments on threads, or in place if a thread fails",
  { skip },
  () =>
    withFolder(async (folder) => {
      const tree = await largeLog();
      await mkdir(join(folder, "segments"));
      for (const { path } of manifestOf(tree).segments) {
        await writeFile(join(folder, path), tree.get(path)!);
      }
      for (const chain of [false, true]) {
        const inPlace = await verifyStorage(new SimulatedDisk(tree), { chain });
        assert.equal(inPlace.report.failure, "file_hash_mismatch");
        // Threads cannot open the second directory, so they fail.
        for (const [name, isInPlace] of [[folder, false], ["\0", true]] as const) {
          const storage = new SimulatedDisk(tree);
          const { report, failure } = await verifyStorage(storage, { chain, folder: name });
          assert.deepEqual(report, inPlace.report);
          assert.equal(failure!.message, inPlace.failure!.message);
          const isRead = storage.operations.some(({ path }) => path.startsWith("segments/"));
          assert.equal(isRead, isInPlace);
        }
      }
    }),
);
