/** Makes the index of a run, under the temporary name, from those of its segments or runs. */
import { mergeIndexes } from "../index/index_merge.ts";
import { NO_COVERAGE } from "../index/index_format.ts";
import { IndexCaches, IndexReader } from "../index/index_reader.ts";
import type { MergePlan } from "../segment/sealed_history.ts";
import { FileWriter } from "../segment/file_writer.ts";
import { openSegment } from "../segment/segment_reader.ts";
import { INDEX_TEMPORARY_FILE } from "../storage/file_names.ts";
import type { Storage, StorageFile } from "../storage/storage.ts";

/** Bytes collected for a write. */
const WRITE_BYTES = 512 * 1024;

/**
 * Writes the index and syncs it.
 * @param throttle called after each step; may block.
 * @throws {CorruptLogError} if an input is damaged.
 */
export async function makeIndex(
  storage: Storage,
  { run, inputs }: MergePlan,
  throttle?: () => void,
): Promise<void> {
  const opened: Pick<StorageFile, "close">[] = [];
  try {
    const sources = [];
    for (const { path, ordinal, coverage } of inputs) {
      const source = coverage === NO_COVERAGE
        ? await openSegment(storage, path)
        : await openIndex(storage, path, coverage);
      opened.push(source);
      sources.push({ index: source.index, ordinal });
    }
    const file = await storage.open(INDEX_TEMPORARY_FILE, "create");
    opened.push(file);
    const writer = new FileWriter(file);
    await mergeIndexes(sources, run.coverage, async (bytes) => {
      writer.appendBytes(bytes);
      if (writer.index >= WRITE_BYTES) await writer.flush();
    }, throttle);
    await writer.flush();
    await file.sync();
  } finally {
    for (const file of opened) await file.close();
  }
}

async function openIndex(storage: Storage, path: string, coverage: string) {
  const file = await storage.open(path, "read");
  const place = async () => ({ file, start: 0, end: await file.size() });
  const index = new IndexReader(path, place, new IndexCaches(), coverage);
  return { index, close: () => file.close() };
}
