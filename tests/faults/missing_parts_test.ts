/**
 * Parts of a log that do not belong together, because an older manifest was put back or a file is
 * missing. Real commands refuse it and change nothing, and with all its parts it works again.
 */
import assert from "node:assert/strict";
import { readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import {
  LOCK_FILE,
  MANIFEST_FILE,
  PENDING_FOLDER,
  TAIL_FILE,
} from "../../src/log/storage/file_names.ts";
import { openEventLog } from "../../src/service/event_log.ts";
import { type Deployment, withDeployment } from "../support/deployment.ts";
import { treeOf } from "../support/file_tree.ts";
import { preparedBatch } from "../support/prepared.ts";
import { rotateOnly } from "../support/sealing.ts";
import { realOptions } from "../support/test_log.ts";

async function assertRefused(
  deployment: Deployment,
  failures: { byDefault: string; byChain: string },
  reason: RegExp,
): Promise<void> {
  await writeFile(join(deployment.logDir, LOCK_FILE), "");
  const before = await treeOf(deployment.logDir);
  for (const command of ["serve", "seal"]) {
    const { code, stdout, stderr } = await deployment.run([command]);
    assert.deepEqual([code, stdout], [1, ""], stderr);
    assert.match(stderr, reason);
  }
  const { byDefault, byChain } = failures;
  for (const [failure, ...flags] of [[byDefault], [byChain, "--chain"]]) {
    const { code, stdout } = await deployment.run(["verify", ...flags]);
    assert.equal(code, 3);
    assert.equal(JSON.parse(stdout).failure, failure);
  }
  assert.deepEqual(await treeOf(deployment.logDir), before);
}

test("an older manifest is refused, so a batch of a later segment is not committed again", () =>
  withDeployment(async (deployment) => {
    const path = join(deployment.logDir, MANIFEST_FILE);
    await deployment.start();
    await deployment.append("b1");
    await deployment.seal();
    const older = await readFile(path);
    await deployment.start();
    await deployment.append("b2");
    await deployment.seal();
    const newer = await readFile(path);
    await writeFile(path, older);
    const failures = { byDefault: "manifest_invalid", byChain: "manifest_invalid" };
    await assertRefused(deployment, failures, /manifest\.json: does not list the next segment/);

    await writeFile(path, newer);
    await deployment.start();
    assert.equal((await deployment.ingest("b2")).json().status, "duplicate");
    deployment.receipts.pop();
    await deployment.assertShows();
    await deployment.stop();
    await deployment.assertContinues();
  }));

/** Creates three pending files and a tail, as a writer that is killed leaves them. */
async function fillPending({ logDir, receipts }: Deployment): Promise<void> {
  const options = realOptions(logDir);
  for (const batchId of ["p1", "p2", "p3", "t"]) {
    const service = await openEventLog(options);
    receipts.push(await service.append(preparedBatch(batchId)));
    await service.close();
    if (batchId !== "t") await rotateOnly(options.storage);
  }
}

const MISSING: [
  what: string,
  pick: (pending: readonly string[]) => string,
  failures: { byDefault: string; byChain: string },
  reason: RegExp,
][] = [
  [
    "the second of three pending files",
    (pending) => join(PENDING_FOLDER, pending[1]!),
    { byDefault: "pending_invalid", byChain: "chain_head_mismatch" },
    /pending\/\S+: /,
  ],
  [
    "the tail",
    () => TAIL_FILE,
    { byDefault: "tail_invalid", byChain: "tail_invalid" },
    /tail\.ndjson is missing/,
  ],
];

for (const [what, pick, failures, reason] of MISSING) {
  test(`a log is refused while it lacks ${what}`, () =>
    withDeployment(async (deployment) => {
      await fillPending(deployment);
      const { folder, logDir } = deployment;
      const pending = (await readdir(join(logDir, PENDING_FOLDER))).sort();
      assert.equal(pending.length, 3);
      const path = join(logDir, pick(pending));
      await rename(path, join(folder, "taken"));
      await assertRefused(deployment, failures, reason);
      await rename(join(folder, "taken"), path);
      await deployment.assertContinues();
    }));
}
