/** Makes the index of a run, under the temporary name, from those of its segments or runs. */
import { Buffer } from "node:buffer";
import { mergeIndexes } from "../index/index_merge.ts";
import { NO_COVERAGE } from "../index/index_format.ts";
import { IndexCaches, IndexReader } from "../index/index_reader.ts";
import type { MergePlan } from "../segment/sealed_history.ts";
import { openSegment } from "../segment/segment_reader.ts";
import { INDEX_TEMPORARY_FILE } from "../storage/file_names.ts";
import type { Storage, StorageFile } from "../storage/storage.ts";

const WRITE_BYTES = 512 * 1024;
/** Bytes written between syncs. A larger value leaves more dirty pages, which delay commits. */
const SYNC_BYTES = 4 * WRITE_BYTES;

/** Makes indexes beside normal service. The temporary name must be free. Calls must not overlap. */
export interface IndexMaker {
  make(plan: MergePlan): Promise<void>;
  /** Rejects active requests and frees all resources. */
  close(): Promise<void>;
}

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
      const isSegment = coverage === NO_COVERAGE;
      const source = isSegment
        ? await openSegment(storage, path)
        : await openIndex(storage, path, coverage);
      opened.push(source);
      sources.push({ index: source.index, ordinal, isSegment });
    }
    const file = await storage.open(INDEX_TEMPORARY_FILE, "create");
    opened.push(file);
    const writer = new SyncingWriter(file);
    await mergeIndexes(sources, run.coverage, (bytes) => writer.write(bytes), throttle);
    await writer.finish();
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

class SyncingWriter {
  readonly #file: StorageFile;
  #buffered: Buffer[] = [];
  #bufferedBytes = 0;
  #end = 0;
  #syncedEnd = 0;

  constructor(file: StorageFile) {
    this.#file = file;
  }

  async write(bytes: Buffer): Promise<void> {
    this.#buffered.push(bytes);
    this.#bufferedBytes += bytes.length;
    if (this.#bufferedBytes >= WRITE_BYTES) await this.#flush();
    if (this.#end - this.#syncedEnd < SYNC_BYTES) return;
    await this.#file.sync();
    this.#syncedEnd = this.#end;
  }

  async finish(): Promise<void> {
    await this.#flush();
    await this.#file.sync();
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.concat(this.#buffered);
    this.#buffered = [];
    this.#bufferedBytes = 0;
    await this.#file.write(bytes, this.#end);
    this.#end += bytes.length;
  }
}
