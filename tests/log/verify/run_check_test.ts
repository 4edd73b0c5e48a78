import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { INDEX_FOLDER, INDEX_TEMPORARY_FILE } from "../../../src/log/storage/file_names.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { flipBit, truncateAt } from "../../support/corrupt.ts";
import { coverageIn, type IndexChange, rewriteIndex } from "../../support/forged_index.ts";
import { mergeLog } from "../../support/merging.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { sealAll } from "../../support/sealing.ts";
import { SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { appendTo } from "../../support/test_log.ts";
import { verifyTree } from "../../support/verifying.ts";

/** A log of 9 segments whose first 8 have a run index. */
async function mergedLog(source: string): Promise<{ tree: Tree; path: string; bytes: Buffer }> {
  const storage = new SimulatedDisk();
  await appendTo(
    storage,
    ...Array.from({ length: 9 }, (_, n) => preparedBatch(`b-${n}`, { source })),
  );
  await sealAll(storage, { events: 1, bytes: Infinity });
  await mergeLog(storage);
  const tree = storage.tree();
  const [path] = [...tree.keys()].filter((name) => name.startsWith(`${INDEX_FOLDER}/`));
  return { tree, path: path!, bytes: Buffer.from(tree.get(path!)!) };
}

const MERGED = mergedLog("shop");

async function reportOf(path: string, bytes: Buffer | null) {
  const tree = new Map((await MERGED).tree);
  if (bytes === null) tree.delete(path);
  else tree.set(path, bytes);
  const { report, failure } = await verifyTree(tree);
  const { ok, orphans, remnants } = report;
  return { ok, orphans, remnants, failure: failure?.code ?? null, message: failure?.message };
}

const FINE = { ok: true, orphans: [], remnants: [], failure: null, message: undefined };

test("verifyLog() accepts the index of a run, and a log without it", async () => {
  const { path, bytes } = await MERGED;
  assert.deepEqual(await reportOf(path, bytes), FINE);
  assert.deepEqual(await reportOf(path, null), FINE);
});

test(`verifyLog() lists a damaged index as a remnant (seed ${SEED})`, async () => {
  const { path, bytes } = await MERGED;
  const random = new SeededRandom();
  for (let run = 0; run < 60; run++) {
    const bit = random.below(8 * bytes.length);
    const damaged = run % 4 === 0 ? truncateAt(bytes, bit >>> 3) : flipBit(bytes, bit);
    const report = await reportOf(path, Buffer.from(damaged));
    assert.deepEqual(report, { ...FINE, remnants: [path] }, `bit ${bit}`);
  }
});

test("verifyLog() accepts a filter of any size, if it has all keys", async () => {
  const { path, bytes } = await MERGED;
  const coverage = coverageIn(path);
  for (const filterBytes of [0, 64, 4096]) {
    const other = await rewriteIndex(bytes, { filterBytes }, coverage);
    assert.notEqual(other.length, bytes.length);
    assert.deepEqual(await reportOf(path, other), FINE);
  }
  const broken = await rewriteIndex(bytes, { filterBytes: 40 }, coverage);
  assert.deepEqual(await reportOf(path, broken), { ...FINE, remnants: [path] });
});

test("verifyLog() fails for an intact index that tells another story", async () => {
  const { path, bytes } = await MERGED;
  const coverage = coverageIn(path);
  const changes: IndexChange[] = [
    { identities: (entries) => entries.slice(1) },
    { locations: (entries) => entries.slice(0, -1) },
    { streams: (entries) => entries.map((entry) => ({ ...entry, events: 1 })) },
    { identities: (entries) => entries.map((entry) => entry ^ 1n).sort() },
  ];
  for (const change of changes) {
    const forged = await rewriteIndex(bytes, change, coverage);
    const { ok, failure, message } = await reportOf(path, forged);
    assert.deepEqual([ok, failure], [false, "idempotency_invalid"]);
    assert.match(message!, /tells another story/);
  }
});

test("verifyLog() lists an index that is not in use as an orphan, and ignores other names", async () => {
  const other = await mergedLog("crm");
  const level = other.path.replace("/1_", "/2_");
  for (const path of [other.path, level, INDEX_TEMPORARY_FILE]) {
    assert.deepEqual(await reportOf(path, other.bytes), { ...FINE, orphans: [path] });
  }
  assert.deepEqual(await reportOf(`${INDEX_FOLDER}/notes.txt`, other.bytes), FINE);
});
