/**
 * What is kept in memory of the segments of a log, each kind within its limit: open files, footers,
 * Bloom filters, stream indexes, and the lines of row groups.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { LruCache } from "../../lru_cache.ts";
import type { BloomFilter } from "../parquet/bloom_filter.ts";
import type { StreamEntry } from "../read/stream_counts.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { isNotFound, type Storage, type StorageFile } from "../storage/storage.ts";
import type { RowGroup, SegmentFooter } from "./segment_footer.ts";
import type { BlockPlace } from "./stream_index.ts";

/** Open files; also the footers that are kept: they take up to 0.5 MiB each, decoded. */
const OPEN_SEGMENTS_MAX = 128;
/** Bloom filters kept in memory. Those of ten million record keys take 20 MiB. */
export const BLOOM_FILTER_CACHE_BYTES_MAX: number = 32 * 1024 * 1024;
/** Entries of stream indexes kept in memory: about 8 MiB of each kind. */
const STREAM_ENTRIES_MAX = 40_000;
/** Lines kept in memory: fifty typical row groups. The memory of an evicted one comes on top. */
export const ROW_GROUP_CACHE_BYTES_MAX: number = 32 * 1024 * 1024;
/** Largest memory of lines that is reused. */
const SPARE_BYTES_MAX = 4 * 1024 * 1024;

/** The Bloom filters of one column of a segment, by row group. */
export type ColumnFilters = readonly BloomFilter[];

/** By the path of a segment, and what is read of it. */
export class SegmentCaches {
  readonly footers = new LruCache<SegmentFooter>(OPEN_SEGMENTS_MAX);
  readonly rowGroups = new LruCache<readonly RowGroup[]>(OPEN_SEGMENTS_MAX);
  readonly filters = new LruCache<ColumnFilters>(
    BLOOM_FILTER_CACHE_BYTES_MAX,
    (filters) => filters.reduce((sum, { byteLength }) => sum + byteLength, 0),
  );
  readonly streamIndexes = new LruCache<readonly BlockPlace[]>(
    STREAM_ENTRIES_MAX,
    ({ length }) => length,
  );
  readonly streamBlocks = new LruCache<readonly StreamEntry[]>(
    STREAM_ENTRIES_MAX,
    ({ length }) => length,
  );
  readonly lines = new RowGroupCache();
}

/**
 * The lines of recently read row groups. Row groups are decoded one at a time, which bounds the
 * memory of decoding for any number of readers.
 *
 * The next row group reuses the memory of evicted lines: V8 runs a full collection after every few
 * MiB allocated outside its heap, so fresh memory would halve the rate of sealed replay. Lines are
 * exposed only during a call, so nobody holds evicted ones.
 */
export class RowGroupCache {
  readonly #lines = new LruCache<Buffer>(
    ROW_GROUP_CACHE_BYTES_MAX,
    ({ buffer }) => buffer.byteLength,
    (lines) => this.#keepSpare(lines),
  );
  /** Memory of evicted lines. */
  #spare: Buffer | undefined;
  /** Settles when the current decode does. */
  #decoding: Promise<unknown> = Promise.resolve();

  /**
   * Calls `use` with the lines of a row group. They are valid until it returns, and read-only.
   * @param decode makes the lines, in the given memory if they fit it.
   */
  async use<Result>(
    key: string,
    decode: (memory: Buffer | undefined) => Promise<Buffer>,
    use: (lines: Buffer) => Result,
  ): Promise<Result> {
    for (;;) {
      const lines = this.#lines.get(key);
      if (lines !== undefined) return use(lines);
      await this.#lines.load(key, () => this.#decode(decode));
    }
  }

  /** Decodes something that is not cached, after the decodes that have begun. */
  decodeInTurn<Decoded>(decode: () => Promise<Decoded>): Promise<Decoded> {
    const decoded = this.#decoding.then(decode);
    // Its reader gets the error; the next decode must not.
    this.#decoding = decoded.catch(() => {});
    return decoded;
  }

  #decode(decode: (memory: Buffer | undefined) => Promise<Buffer>): Promise<Buffer> {
    return this.decodeInTurn(() => {
      const memory = this.#spare;
      this.#spare = undefined;
      return decode(memory);
    });
  }

  #keepSpare({ buffer }: Buffer): void {
    if (buffer.byteLength <= SPARE_BYTES_MAX) this.#spare = Buffer.from(buffer as ArrayBuffer);
  }
}

/** A file of a segment, as the manifest lists it. */
export interface ListedFile {
  path: string;
  bytes: number;
}

/** Opens the file of a segment. @throws {CorruptLogError} it is missing or has another size. */
export async function openListedFile(
  storage: Storage,
  { path, bytes }: ListedFile,
): Promise<StorageFile> {
  const file = await storage.open(path, "read").catch((cause) => {
    if (!isNotFound(cause)) throw cause;
    throw new CorruptLogError(`${path}: is in the manifest, but missing`, { cause });
  });
  try {
    const sizeBytes = await file.size();
    if (sizeBytes === bytes) return file;
    throw new CorruptLogError(`${path}: has ${sizeBytes} bytes, the manifest says ${bytes}`);
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The open files of segments. A read opens its file; beyond the limit another one is closed. */
export class OpenFiles {
  readonly #storage: Storage;
  readonly #files: LruCache<StorageFile>;
  /** Reads and closes that have begun. */
  readonly #pending = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(storage: Storage, openMax: number = OPEN_SEGMENTS_MAX) {
    this.#storage = storage;
    // Only reads follow it, so an error of a close changes nothing.
    const close = (file: StorageFile) => void this.#track(file.close()).catch(() => {});
    this.#files = new LruCache(openMax, () => 1, close);
  }

  /**
   * A file that is open while it is read; its close does nothing. A read throws a CorruptLogError
   * when the file is missing or has another size.
   */
  fileOf(listed: ListedFile): Pick<StorageFile, "read" | "close"> {
    return {
      read: (into, position) => {
        assert(!this.#isClosed, "no read of a segment begins once the log is closed");
        return this.#track(this.#read(listed, into, position));
      },
      close: () => Promise.resolve(),
    };
  }

  /** Closes all files once the reads that have begun are done; none may begin anymore. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#pending);
    this.#files.clear();
    await Promise.allSettled(this.#pending);
  }

  async #read(listed: ListedFile, into: Uint8Array, position: number): Promise<number> {
    for (;;) {
      const file = this.#files.get(listed.path);
      // A close waits for the reads that have begun.
      if (file !== undefined) return await file.read(into, position);
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
