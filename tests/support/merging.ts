/** Merges the indexes of a closed log, as its writer does while it serves. */
import { type MergePlan, SealedHistory } from "../../src/log/segment/sealed_history.ts";
import { readManifest } from "../../src/log/segment/manifest.ts";
import { makeIndex, mergeNext } from "../../src/log/sealing/index_merging.ts";
import type { Storage } from "../../src/log/storage/storage.ts";

/** Makes the indexes that are due, and removes those not in use. */
export async function mergeAll(
  storage: Storage,
  sealed: SealedHistory,
  make: (plan: MergePlan) => Promise<void> = (plan) => makeIndex(storage, plan),
): Promise<void> {
  while (sealed.leftover !== null || sealed.nextMerge() !== null) {
    await mergeNext(storage, sealed, make);
  }
}

export async function mergeLog(storage: Storage): Promise<void> {
  const sealed = new SealedHistory(storage);
  await sealed.open((await readManifest(storage))!.segments);
  await mergeAll(storage, sealed);
  await sealed.close();
}
