/**
 * The table cache of a log: open segments and index files, each with what was parsed when it was
 * opened, and the blocks of streams that were read last.
 */
import { assert } from "../../assert.ts";
import { LruCache } from "../../lru_cache.ts";
import type { Maybe } from "../../maybe.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { isNotFound, type Storage, type StorageFile } from "../storage/storage.ts";
import { CachedReads } from "../wal/cached_reads.ts";

/** Maximum open files. A footer takes up to 0.5 MiB, the directories of 10^9 keys 16 MiB. */
const OPEN_FILES_MAX = 128;
/** Maximum rows of cached stream blocks: about 16 MiB. */
const STREAM_ROWS_MAX = 80_000;

export interface ListedFile {
  path: string;
  /** Undefined if the size is not known from elsewhere. */
  bytes?: number;
}

/**
 * A file that is opened on demand. Its methods throw CorruptLogError if it is missing or has the
 * wrong size.
 */
export interface TableFile extends Pick<StorageFile, "read" | "size"> {
  /** Returns what `parse` returned for this name since the file was opened, if it succeeded. */
  parsed<Parsed>(name: string, parse: () => Promise<Parsed>): Maybe<Parsed>;
}

interface OpenFile {
  file: StorageFile;
  parsed: Map<string, Maybe<unknown>>;
}

/** Beyond the limit, the least recently used file is closed. */
export class TableCache {
  /** Sorted rows by file and block. */
  readonly blocks = new LruCache<readonly { key: string }[]>(
    STREAM_ROWS_MAX,
    ({ length }) => length,
  );
  readonly reads = new CachedReads();
  readonly #storage: Storage;
  readonly #files: LruCache<OpenFile>;
  /** Active reads and closes. */
  readonly #pending = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(storage: Storage, openMax: number = OPEN_FILES_MAX) {
    this.#storage = storage;
    // The file is read-only, so a failed close loses nothing.
    const close = ({ file }: OpenFile) => void this.#track(file.close()).catch(() => {});
    this.#files = new LruCache(openMax, () => 1, close);
  }

  file(listed: ListedFile): TableFile {
    const use = <Result>(call: (open: OpenFile) => Maybe<Result>): Maybe<Result> => {
      assert(!this.#isClosed, "segments must not be read after the log is closed");
      const open = this.#files.get(listed.path);
      const result = open === undefined ? this.#openAnd(listed, call) : call(open);
      return result instanceof Promise ? this.#track(result) : result;
    };
    return {
      read: (into, position, mode) => use(({ file }) => file.read(into, position, mode)),
      size: async () => await use(({ file }) => file.size()),
      parsed: <Parsed>(name: string, parse: () => Promise<Parsed>) =>
        use(({ parsed }) => {
          const known = parsed.get(name);
          if (known !== undefined) return known as Maybe<Parsed>;
          const parsing = parse();
          parsed.set(name, parsing);
          parsing.then((value) => parsed.set(name, value), () => parsed.delete(name));
          return parsing;
        }),
    };
  }

  /** Closes a file that was removed, once its reads finish. */
  forget(path: string): void {
    this.#files.delete(path);
  }

  /** Closes all files once active reads finish. No read may start afterwards. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#pending);
    this.#isClosed = true;
    this.#files.clear();
    await Promise.allSettled(this.#pending);
  }

  async #openAnd<Result>(
    listed: ListedFile,
    call: (open: OpenFile) => Maybe<Result>,
  ): Promise<Result> {
    for (;;) {
      await this.#files.load(listed.path, async () => {
        return { file: await openListedFile(this.#storage, listed), parsed: new Map() };
      });
      const open = this.#files.get(listed.path);
      // A concurrent close waits for active reads.
      if (open !== undefined) return await call(open);
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
