/** A fabricated log has the parts of a real one. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fabricateLog } from "../../bench/scale/fabricate.ts";
import { readManifest } from "../../src/log/segment/manifest.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { mergeLog } from "../support/merging.ts";
import { checkIndex, coverageIn, indexIn } from "../support/forged_index.ts";
import { preparedBatch } from "../support/prepared.ts";
import { sealAll } from "../support/sealing.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { openTestLog } from "../support/test_log.ts";

const SEGMENTS = 72;
const BATCHES = 20;

/** A real log of single-event batches, each with its own key, with all indexes merged. */
async function realLog(): Promise<SimulatedDisk> {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  for (let n = 0; n < SEGMENTS; n++) {
    await log.append(Array.from({ length: BATCHES }, (_, batch) =>
      preparedBatch(`${n}-${batch}`, {
        source: "old",
        events: [{ stream: "old", recordKey: `key-${n}-${batch}` }],
      })));
  }
  await log.append([preparedBatch("last")]);
  await log.close();
  await sealAll(storage, { events: 1, bytes: Infinity });
  await mergeLog(storage);
  return storage;
}

/** The sizes of an index, without what depends on the keys. */
async function shapeOf(path: string, bytes: Uint8Array) {
  const coverage = coverageIn(path);
  const index = indexIn(Buffer.from(bytes), coverage);
  await checkIndex(index);
  const { batches, streams, height, filterBytes, identities, directories } = await index.open();
  return {
    numbers: [batches, streams, height, filterBytes],
    identities,
    pages: directories.identities.length,
  };
}

test("fabricateLog() makes the runs and indexes of a real log", async () => {
  const real = await realLog();
  const { segments } = (await readManifest(real))!;
  assert.equal(segments.length, SEGMENTS + 1);
  const realPaths = [...real.tree().keys()].filter((path) => path.startsWith("index/")).sort();
  const folder = await mkdtemp(join(tmpdir(), "fabricated-"));
  try {
    const small = new SimulatedDisk();
    const { log } = await openTestLog(small);
    await log.append([preparedBatch("last")]);
    await log.close();
    await sealAll(small);
    const manifest = (await readManifest(small))!;
    await mkdir(join(folder, "segments"));
    const runs = await fabricateLog(folder, manifest, { count: SEGMENTS, batches: BATCHES });
    const paths = runs.map(({ path }) => path).sort();
    assert.deepEqual(
      paths.map((path) => path.slice(0, 8)),
      realPaths.map((path) => path.slice(0, 8)),
    );
    for (const [place, path] of paths.entries()) {
      const fabricated = await shapeOf(path, await readFile(join(folder, path)));
      const found = await shapeOf(realPaths[place]!, real.contents(realPaths[place]!));
      // In the real index, each segment has the stream and the source, and the stream's name.
      const streams = runs.find((run) => run.path === path)!.count;
      assert.equal(found.identities, fabricated.identities + 2 * streams);
      assert.equal(found.pages, Math.ceil(found.identities / 511));
      assert.deepEqual(found.numbers, fabricated.numbers);
    }
    const fabricated = (await readManifest(fileStorage(folder)))!;
    assert.equal(fabricated.segments.length, SEGMENTS + 1);
  } finally {
    await rm(folder, { recursive: true });
  }
});
