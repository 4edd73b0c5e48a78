/**
 * Bounded caches shared by the segments in a log: open files, footers, indexes, and the
 * lines in row groups.
 */
import type { Buffer } from "node:buffer";
import { setImmediate } from "node:timers";
import { assert } from "../../assert.ts";
import { freeOwnMemory } from "../../free_memory.ts";
import { LruCache } from "../../lru_cache.ts";
import { IndexCaches } from "../index/index_reader.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { isNotFound, type Storage, type StorageFile } from "../storage/storage.ts";
import { INLINE_DECODER, type RowGroupDecoder } from "./row_group_decoder.ts";
import type { SegmentFooter } from "./segment_footer.ts";

/** Maximum open files and cached footers; a decoded footer takes up to 0.5 MiB. */
const OPEN_SEGMENTS_MAX = 128;
/** Limit on cached lines: twenty typical row groups. */
export const ROW_GROUP_CACHE_BYTES_MAX: number = 32 * 1024 * 1024;

/** Caches keyed by segment path and, if a segment has several items, the item. */
export class SegmentCaches {
  readonly footers = new LruCache<SegmentFooter>(OPEN_SEGMENTS_MAX);
  readonly indexes = new IndexCaches();
  readonly lines = new RowGroupCache();
  readonly decoder: RowGroupDecoder;

  /** @param decoder decodes row groups into lines; closed by the caller. */
  constructor(decoder: RowGroupDecoder = INLINE_DECODER) {
    this.decoder = decoder;
  }
}

/**
 * The lines from recently read row groups. Row groups are decoded one at a time, so decoding needs
 * the same memory for any number of readers.
 */
class RowGroupCache {
  readonly #lines = new LruCache<Buffer>(
    ROW_GROUP_CACHE_BYTES_MAX,
    ({ buffer }) => buffer.byteLength,
    // Whoever has waited for the lines uses them in this turn of the event loop.
    (lines) => void setImmediate(() => freeOwnMemory(lines)),
  );
  /** Settles when the last requested decode settles. */
  #decoding: Promise<unknown> = Promise.resolve();
  /** Number of decodes that have not settled. */
  #decodes = 0;

  /**
   * Calls `use` with the lines in a row group, which are read-only and valid until `use` returns.
   * @param decode decodes the lines.
   */
  async use<Result>(
    key: string,
    decode: () => Promise<Buffer>,
    use: (lines: Buffer) => Result,
  ): Promise<Result> {
    return use(await this.#lines.load(key, () => this.decodeInTurn(decode)));
  }

  /** Decodes a row group ahead of its use. While others are decoded, readers take turns instead. */
  prefetch(key: string, decode: () => Promise<Buffer>): void {
    if (this.#decodes > 0) return;
    // The reader that needs the lines retries, and gets the error.
    this.#lines.load(key, () => this.decodeInTurn(decode)).catch(() => {});
  }

  /** Runs an uncached decode once all previously requested decodes have settled. */
  decodeInTurn<Decoded>(decode: () => Promise<Decoded>): Promise<Decoded> {
    this.#decodes += 1;
    const decoded = this.#decoding.then(decode).finally(() => this.#decodes -= 1);
    // The caller gets this decode's error; the next decode must not fail because of it.
    this.#decoding = decoded.catch(() => {});
    return decoded;
  }
}

export interface ListedFile {
  path: string;
  /** Undefined if the size is not known from elsewhere. */
  bytes?: number;
}

/** Opens a segment file. @throws {CorruptLogError} if it is missing or has the wrong size. */
export async function openListedFile(
  storage: Storage,
  { path, bytes }: ListedFile,
): Promise<StorageFile> {
  const file = await storage.open(path, "read").catch((cause) => {
    if (!isNotFound(cause)) throw cause;
    const what = bytes === undefined ? "missing" : "listed in the manifest, but missing";
    throw new CorruptLogError(`${path}: ${what}`, { cause });
  });
  try {
    const sizeBytes = await file.size();
    if (bytes === undefined || sizeBytes === bytes) return file;
    throw new CorruptLogError(`${path}: has ${sizeBytes} bytes, but the manifest says ${bytes}`);
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Table cache for segment files. Beyond the limit, the least recently used file is closed. */
export class OpenFiles {
  readonly #storage: Storage;
  readonly #files: LruCache<StorageFile>;
  /** Active reads and closes. */
  readonly #pending = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(storage: Storage, openMax: number = OPEN_SEGMENTS_MAX) {
    this.#storage = storage;
    // The file is read-only, so a failed close loses nothing.
    const close = (file: StorageFile) => void this.#track(file.close()).catch(() => {});
    this.#files = new LruCache(openMax, () => 1, close);
  }

  /**
   * Returns a file that is opened on demand; its `close()` does nothing. `read()` throws
   * CorruptLogError if the file is missing or has the wrong size.
   */
  fileOf(listed: ListedFile): Pick<StorageFile, "read" | "size" | "close"> {
    const use = <Result>(call: (file: StorageFile) => Promise<Result>) => {
      assert(!this.#isClosed, "segments must not be read after the log is closed");
      return this.#track(this.#use(listed, call));
    };
    return {
      read: (into, position, mode) => use((file) => file.read(into, position, mode)),
      size: () => use((file) => file.size()),
      close: () => Promise.resolve(),
    };
  }

  /** Closes a file that was removed, once its reads finish. */
  forget(path: string): void {
    this.#files.delete(path);
  }

  /** Closes all files once active reads finish. No read may start afterwards. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#pending);
    this.#files.clear();
    await Promise.allSettled(this.#pending);
  }

  async #use<Result>(
    listed: ListedFile,
    call: (file: StorageFile) => Promise<Result>,
  ): Promise<Result> {
    for (;;) {
      const file = this.#files.get(listed.path);
      // A concurrent close waits for active reads.
      if (file !== undefined) return await call(file);
      await this.#files.load(listed.path, () => openListedFile(this.#storage, listed));
    }
  }

  async #track<Result>(begun: Promise<Result>): Promise<Result> {
    this.#pending.add(begun);
    try {
      return await begun;
    } finally {
      this.#pending.delete(begun);
    }
  }
}
