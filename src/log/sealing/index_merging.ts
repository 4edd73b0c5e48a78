/**
 * Merges indexes beside normal service, one run after another, and removes index files that are not
 * in use (docs/format.md, "Index files"). A crash at any step leaves files that the next start
 * either uses or removes.
 */
import type { SealedHistory } from "../segment/sealed_history.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { INDEX_FOLDER, INDEX_TEMPORARY_FILE } from "../storage/file_names.ts";
import { removeIfThere, type Storage } from "../storage/storage.ts";
import type { IndexMaker } from "./background_sealing.ts";

/** Removes an index file that is not in use, or else makes the next index. */
export async function mergeNext(
  storage: Storage,
  sealed: SealedHistory,
  maker: Pick<IndexMaker, "make">,
): Promise<void> {
  if (sealed.leftover !== null) return await sealed.removeLeftover();
  const plan = sealed.nextMerge();
  if (plan === null) return;
  if (await storage.list(INDEX_FOLDER) === null) {
    await storage.makeFolder(INDEX_FOLDER);
    await storage.syncFolder(".");
  }
  await removeIfThere(storage, INDEX_TEMPORARY_FILE);
  try {
    await maker.make(plan);
    await storage.rename(INDEX_TEMPORARY_FILE, plan.run.path);
    await storage.syncFolder(INDEX_FOLDER);
  } catch (error) {
    await removeIfThere(storage, INDEX_TEMPORARY_FILE).catch(() => {});
    if (!(error instanceof CorruptLogError)) throw error;
    // Retrying would find the same damage.
    return sealed.giveUpMerge(plan.run, error);
  }
  sealed.useRun(plan.run);
}
