/** Verifies the index of a run, by making it again from the indexes of its segments. */
import { Buffer } from "node:buffer";
import { mergeIndexes } from "../index/index_merge.ts";
import { IndexError } from "../index/index_format.ts";
import { IndexCaches, IndexReader } from "../index/index_reader.ts";
import type { Run } from "../index/run_plan.ts";
import type { SealedHistory } from "../segment/sealed_history.ts";
import { isNotFound, type Storage, type StorageFile } from "../storage/storage.ts";
import { CachedReads } from "../wal/cached_reads.ts";
import { VerifyFailure } from "./failure.ts";

class Differs extends Error {}

/**
 * @param sealed the segments, which are verified.
 * @returns false if the index is damaged, so that the writer makes it again. An index that has
 *   disappeared was merged meanwhile.
 * @throws {VerifyFailure} if it is intact, but differs from what its segments say.
 */
export async function checkRun(storage: Storage, run: Run, sealed: SealedHistory) {
  const file = await storage.open(run.path, "read").catch((error) => {
    if (!isNotFound(error)) throw error;
    return null;
  });
  if (file === null) return true;
  try {
    await compare(file, run, sealed);
    return true;
  } catch (error) {
    if (!(error instanceof Differs)) throw error;
    if (!await isIntact(file, run)) return false;
    const what = "tells another story than the segments that it covers";
    throw new VerifyFailure("idempotency_invalid", what, { path: run.path });
  } finally {
    await file.close();
  }
}

async function compare(file: StorageFile, run: Run, sealed: SealedHistory): Promise<void> {
  const reads = new CachedReads();
  let end = 0;
  await mergeIndexes(sealed.indexesOf(run), run.coverage, async (bytes) => {
    const found = Buffer.allocUnsafe(bytes.length);
    const readBytes = await reads.read(file, found, end);
    if (readBytes !== bytes.length || !found.equals(bytes)) throw new Differs();
    end += readBytes;
  });
  if (end !== await file.size()) throw new Differs();
}

async function isIntact(file: StorageFile, { path, coverage }: Run): Promise<boolean> {
  const place = async () => ({ file, start: 0, end: await file.size() });
  try {
    await new IndexReader(path, place, new IndexCaches(), coverage).check();
    return true;
  } catch (error) {
    if (!(error instanceof IndexError)) throw error;
    return false;
  }
}
