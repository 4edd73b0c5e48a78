/** The indexes of a fabricated log are those that a service would have made. */
import assert from "node:assert/strict";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fabricateLog } from "../../bench/scale/fabricate.ts";
import { chooseRuns } from "../../src/log/index/run_plan.ts";
import { EMPTY_MANIFEST, readManifest } from "../../src/log/segment/manifest.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { withFolder } from "../../tools/support/program.ts";
import { checkIndex, coverageIn, indexIn } from "../support/forged_index.ts";

const BATCHES = 20;

test("fabricateLog() makes intact indexes of the runs in its manifest", () =>
  withFolder(async (folder) => {
    await mkdir(join(folder, "segments"));
    await fabricateLog(folder, EMPTY_MANIFEST, { count: 72, batches: BATCHES });
    const paths = (await readdir(join(folder, "index"))).map((name) => `index/${name}`);
    const { segments } = (await readManifest(fileStorage(folder)))!;
    const runs = chooseRuns(segments, new Set(paths));
    assert.deepEqual(runs.map(({ count }) => count), [64, 8]);
    for (const { path, count } of runs) {
      const index = indexIn(await readFile(join(folder, path)), coverageIn(path));
      await checkIndex(index);
      const { batches, identities } = await index.open();
      assert.deepEqual([batches, identities], [count * BATCHES, count * BATCHES]);
    }
  }));
