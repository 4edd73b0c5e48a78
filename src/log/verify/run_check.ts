/** Verifies the index of a run, by making it again from the indexes of its segments. */
import { createHash } from "node:crypto";
import { mergeIndexes } from "../index/index_merge.ts";
import { IndexError } from "../index/index_format.ts";
import { runIndex } from "../index/index_reader.ts";
import { TableCache } from "../index/table_cache.ts";
import type { Run } from "../index/run_plan.ts";
import type { SealedHistory } from "../segment/sealed_history.ts";
import { hashFile, isNotFound, type Storage } from "../storage/storage.ts";
import { VerifyFailure } from "../storage/errors.ts";

/**
 * @param sealed the segments, which are verified.
 * @returns false if the index is damaged, so that the writer makes it again. An index that has
 *   disappeared was merged meanwhile.
 * @throws {VerifyFailure} if it is intact, but differs from what its segments say.
 */
export async function checkRun(storage: Storage, run: Run, sealed: SealedHistory) {
  const { path, coverage } = run;
  const tables = new TableCache(storage);
  const file = tables.file({ path });
  const index = runIndex(tables, path, coverage);
  try {
    let open;
    try {
      open = await index.open();
    } catch (error) {
      if (!isNotFound((error as Error).cause)) throw error;
      return true;
    }
    const expected = createHash("sha256");
    const add = (bytes: Uint8Array) => void expected.update(bytes);
    // The writer was free to choose the size of the filter.
    const { filterBytes } = open;
    await mergeIndexes(sealed.indexesOf(run), coverage, add, filterBytes);
    if (expected.digest("hex") === await hashFile(file, await file.size())) return true;
    // Reading all of it finds damage; otherwise it was made from something else.
    await index.loadFilter(open);
    await mergeIndexes([{ index, ordinal: 0 }], coverage, () => {});
    const message = `${path}: tells another story than the segments that it covers`;
    throw new VerifyFailure("idempotency_invalid", message);
  } catch (error) {
    if (!(error instanceof IndexError)) throw error;
    return false;
  } finally {
    await tables.close();
  }
}
