/** Builds logs in memory with any mix of files, and verifies them. */
import assert from "node:assert/strict";
import { type Verification, verifyLog, type VerifyOptions } from "../../src/log/verify/verify.ts";
import { changesDisk, SimulatedDisk, type Tree } from "./simulated_disk.ts";
import { preparedBatch } from "./prepared.ts";
import { rotateOnly, sealAll, SMALL_SEGMENTS } from "./sealing.ts";
import { appendTo, openTestLog } from "./test_log.ts";

/** Verifies a log, and asserts that this changed nothing and left no file open. */
export async function verifyStorage(
  storage: SimulatedDisk,
  options: VerifyOptions = { chain: true },
): Promise<Verification> {
  const operationsBefore = storage.operations.length;
  const openBefore = storage.openFiles;
  const verification = await verifyLog(storage, options);
  assert.deepEqual(storage.operations.slice(operationsBefore).filter(changesDisk), []);
  assert.equal(storage.openFiles, openBefore);
  assert.equal(verification.report.failure, verification.failure?.code ?? null);
  assert.equal(verification.report.ok, verification.failure === null);
  return verification;
}

export function verifyTree(tree: Tree, options?: VerifyOptions): Promise<Verification> {
  return verifyStorage(new SimulatedDisk(tree), options);
}

/** Appends a commit for each list of batch ids. Each batch has several events and streams. */
async function appendCommits(storage: SimulatedDisk, names: readonly string[][]): Promise<void> {
  const { log } = await openTestLog(storage);
  for (const batchIds of names) {
    await log.append(batchIds.map((batchId, number) =>
      preparedBatch(batchId, {
        source: number % 2 === 0 ? "shop" : "crm",
        events: [1, 2, 3].slice(number % 2).map((place) => ({
          stream: `s-${place}`,
          recordKey: `${batchId} "é" ${place}`,
          payload: { batchId, place, text: "東京" },
          ...(place === 2 && { occurredAt: "2025-12-31T23:59:59.5Z" }),
        })),
      })
    ));
  }
  await log.close();
}

/** The files of a log. */
export interface LogShape {
  segments?: boolean;
  pendingFiles?: number;
  /** Commits in the tail, not counting the clean-shutdown marker. */
  tailCommits?: number;
}

/**
 * A log after a clean shutdown. Every commit contains two batches, one with three events and one
 * with two, except the first and last sealed commits, which contain a single batch of three events.
 */
export async function logOf(
  { segments = false, pendingFiles = 0, tailCommits = 0 }: LogShape,
): Promise<Tree> {
  const storage = new SimulatedDisk();
  if (segments) {
    await appendCommits(storage, [["a"], ["b1", "b2"], ["c"]]);
    await sealAll(storage, SMALL_SEGMENTS);
  }
  for (let number = 0; number < pendingFiles; number++) {
    await appendCommits(
      storage,
      [[`p${number}-1`, `p${number}-2`], [`p${number}-3`, "p"]]
        .map((ids) => ids.map((id) => `${id}/${number}`)),
    );
    await rotateOnly(storage);
  }
  const commits = Array.from({ length: tailCommits }, (_, i) => [`t${i}-1`, `t${i}-2`]);
  await appendCommits(storage, commits);
  return storage.tree();
}

/** A log with a batch stored twice: in a segment (0), a pending file (1) or the tail (2). */
export async function logWithTwice(first: number, second: number): Promise<Tree> {
  const storage = new SimulatedDisk();
  for (let place = 0; place < 3; place++) {
    const twice = place === first || place === second ? ["twice"] : [];
    const other = preparedBatch("twice", { source: `other-${place}` });
    await appendTo(storage, `a${place}`, ...twice, other);
    if (place === 0) await sealAll(storage, SMALL_SEGMENTS);
    if (place === 1) await rotateOnly(storage);
  }
  return storage.tree();
}

/** A log with three segments, two pending files and a tail with three commits. */
export function fullLog(): Promise<Tree> {
  return logOf({ segments: true, pendingFiles: 2, tailCommits: 3 });
}
