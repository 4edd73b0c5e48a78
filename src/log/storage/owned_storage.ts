/**
 * The storage of an open log, which notices when someone else moves, replaces or removes the log's
 * files (docs/format.md, "Ownership"). From then on, it changes no name, since the names may belong
 * to another log.
 */
import { dirname } from "node:path";
import { WriterPoisonedError } from "./errors.ts";
import { INDEX_FOLDER, SEGMENTS_FOLDER } from "./file_names.ts";
import type { Storage } from "./storage.ts";

/** A writer looks at least this often whether its files are in place. */
export const OWNERSHIP_CHECK_MS = 1000;

export class OwnedStorage implements Storage {
  readonly #inner: Storage;
  /** Returns damage that the identities of files don't show; null if there is none. */
  findDamage: () => Promise<string | null> = () => Promise.resolve(null);
  /** The identities of the files and directories that are open, by path. */
  readonly #held = new Map<string, string>();
  #loss: string | null = null;
  #checking: Promise<string | null> | null = null;
  #dueMs: number = performance.now() + OWNERSHIP_CHECK_MS;

  constructor(inner: Storage) {
    this.#inner = inner;
  }

  /** What was found in place of the log's files; null while they are in place and whole. */
  get loss(): string | null {
    return this.#loss;
  }

  /** Whether `assertOwned()` must be called before another receipt. */
  get isDue(): boolean {
    return this.#loss !== null || performance.now() >= this.#dueMs;
  }

  /** Adds paths that the caller is about to open, or has just made. */
  async hold(...paths: string[]): Promise<void> {
    for (const path of paths) this.#held.set(path, await this.identity(path));
  }

  /** Looks at all held paths. Returns `loss`. */
  async findLoss(): Promise<string | null> {
    return await (this.#checking ??= this.#check().finally(() => this.#checking = null));
  }

  async #check(): Promise<string | null> {
    for (const [path, identity] of [...this.#held]) {
      const found = await this.identity(path);
      // The log itself may have moved the file in the meantime.
      if (found === identity || this.#held.get(path) !== identity) continue;
      // This says nothing about the file.
      if (found === "ENOMEM") throw new Error(`${path}: cannot be examined: ${found}`);
      // Other error codes than these say what is wrong.
      const isLost = /:|ENOENT|ENOTDIR/.test(found);
      const what = isLost ? "is no longer the file that this process has open" : found;
      this.#loss ??= `${path}: ${what}`;
    }
    return this.#loss ??= await this.findDamage();
  }

  /** @throws {WriterPoisonedError} if the files are no longer those of the log. */
  async assertOwned(): Promise<void> {
    const loss = await this.findLoss();
    if (loss !== null) throw new WriterPoisonedError(loss);
    this.#dueMs = performance.now() + OWNERSHIP_CHECK_MS;
  }

  open: Storage["open"] = async (path, mode) => {
    if (mode === "create") await this.assertOwned();
    return await this.#inner.open(path, mode);
  };

  rename: Storage["rename"] = async (from, to) => {
    await this.assertOwned();
    const released = [...this.#held].filter(([path]) => path === from || path === to);
    for (const [path] of released) this.#held.delete(path);
    try {
      await this.#inner.rename(from, to);
    } catch (error) {
      for (const [path, identity] of released) this.#held.set(path, identity);
      throw error;
    }
    // There can be ten thousand segments, and nobody needs an index.
    if (![SEGMENTS_FOLDER, INDEX_FOLDER].includes(dirname(to))) await this.hold(to);
  };

  remove: Storage["remove"] = async (path) => {
    await this.assertOwned();
    this.#held.delete(path);
    await this.#inner.remove(path);
  };

  makeFolder: Storage["makeFolder"] = (path) => this.#inner.makeFolder(path);
  list: Storage["list"] = (folder) => this.#inner.list(folder);
  syncFolder: Storage["syncFolder"] = (path) => this.#inner.syncFolder(path);
  closeFolders: Storage["closeFolders"] = () => this.#inner.closeFolders();
  identity: Storage["identity"] = (path) => this.#inner.identity(path);
}
