/**
 * Merges indexes beside normal service, one run after another, and removes index files that are not
 * in use (docs/format.md, "Index files"). A crash at any step leaves files that the next start
 * either uses or removes.
 */
import type { MergePlan, SealedHistory } from "../segment/sealed_history.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { INDEX_FOLDER, INDEX_TEMPORARY_FILE } from "../storage/file_names.ts";
import { removeIfThere, type Storage } from "../storage/storage.ts";
import { mergeIndexes } from "../index/index_merge.ts";
import { NO_COVERAGE } from "../index/index_format.ts";
import { runIndex } from "../index/index_reader.ts";
import { TableCache } from "../index/table_cache.ts";
import { FileWriter } from "../segment/file_writer.ts";
import { Segment } from "../segment/segment_reader.ts";

/** Bytes collected for a write. */
const WRITE_BYTES = 512 * 1024;

/**
 * Writes the index and syncs it.
 * @param throttle called after each write; may block.
 * @throws {CorruptLogError} if an input is damaged.
 */
export async function makeIndex(
  storage: Storage,
  { run, inputs }: MergePlan,
  throttle: () => void = () => {},
): Promise<void> {
  const tables = new TableCache(storage);
  const sources = inputs.map(({ path, ordinal, coverage }) => ({
    index: coverage === NO_COVERAGE
      ? new Segment({ path }, tables).index
      : runIndex(tables, path, coverage),
    ordinal,
  }));
  const file = await storage.open(INDEX_TEMPORARY_FILE, "create");
  try {
    const writer = new FileWriter(file);
    await mergeIndexes(sources, run.coverage, async (bytes) => {
      writer.appendBytes(bytes);
      if (writer.index < WRITE_BYTES) return;
      await writer.writeOut();
      throttle();
    });
    await writer.writeOut();
    await file.sync();
  } finally {
    await file.close();
    await tables.close();
  }
}

/** Removes an index file that is not in use, or else makes the next index. */
export async function mergeNext(
  storage: Storage,
  sealed: SealedHistory,
  make: (plan: MergePlan) => Promise<void>,
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
    await make(plan);
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
