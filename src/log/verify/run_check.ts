/** Verifies the index of a run, by making it again from the indexes of its segments. */
import { Buffer } from "node:buffer";
import { mergeIndexes, type MergeInput } from "../index/index_merge.ts";
import { IndexError } from "../index/index_format.ts";
import { runIndex } from "../index/index_reader.ts";
import { TableCache, type TableFile } from "../index/table_cache.ts";
import type { Run } from "../index/run_plan.ts";
import type { SealedHistory } from "../segment/sealed_history.ts";
import { isNotFound, type Storage } from "../storage/storage.ts";
import { VerifyFailure } from "../storage/errors.ts";

/** A filter can have 64 MiB. */
const COMPARED_BYTES = 1024 * 1024;

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
  try {
    const index = runIndex(tables, path, coverage);
    let open;
    try {
      open = await index.open();
    } catch (error) {
      if (!isNotFound((error as Error).cause)) throw error;
      return true;
    }
    if (await isSame(file, run, sealed.indexesOf(run), open)) return true;
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

/**
 * Whether a file has the index that these inputs have together.
 * @param filterBytes the size of its filter, which the writer was free to choose.
 */
async function isSame(
  file: TableFile,
  run: Run,
  inputs: MergeInput[],
  { filterBytes }: { filterBytes: number },
): Promise<boolean> {
  let end = 0;
  let isSame = true;
  const compare = async (bytes: Buffer) => {
    for (let at = 0; at < bytes.length; at += COMPARED_BYTES) {
      const expected = bytes.subarray(at, at + COMPARED_BYTES);
      const found = Buffer.alloc(expected.length);
      await file.read(found, end);
      isSame &&= found.equals(expected);
      end += expected.length;
    }
  };
  await mergeIndexes(inputs, run.coverage, compare, { filterBytes });
  return isSame && end === await file.size();
}
