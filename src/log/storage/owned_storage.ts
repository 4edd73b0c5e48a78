/**
 * The storage of an open log, which notices when someone else removes or replaces the log's files:
 * the lock, the manifest, the tail, the pending files, the newest segment and the directories. It
 * then changes no name any more, since the names may belong to another log.
 */
import { WriterPoisonedError } from "./errors.ts";
import { SEGMENTS_FOLDER } from "./file_names.ts";
import type { OpenMode, Storage, StorageFile } from "./storage.ts";

export class OwnedStorage implements Storage {
  readonly #inner: Storage;
  /** Identities by path. */
  readonly #held = new Map<string, string | null>();
  #loss: string | null = null;
  #checking: Promise<string | null> | null = null;

  constructor(inner: Storage) {
    this.#inner = inner;
  }

  /** What was found in place of the log's files; null while they are in place. */
  get loss(): string | null {
    return this.#loss;
  }

  /** Adds files or directories of the log, which the caller has just opened. */
  async hold(...paths: string[]): Promise<void> {
    for (const path of paths) this.#held.set(path, await this.#inner.identity(path));
  }

  /** Returns `loss` after looking at all held paths. */
  async findLoss(): Promise<string | null> {
    return await (this.#checking ??= this.#check().finally(() => this.#checking = null));
  }

  async #check(): Promise<string | null> {
    for (const [path, identity] of [...this.#held]) {
      const found = await this.#inner.identity(path).catch(({ message }: Error) => message);
      // The log itself may have moved the file in the meantime.
      if (found === identity || this.#held.get(path) !== identity) continue;
      const what = found === null ? "was removed" : "is not the file that was opened";
      this.#loss ??= `${path}: ${what}; the log's files were moved, replaced or removed`;
    }
    return this.#loss;
  }

  /** @throws {WriterPoisonedError} if the files are no longer those of the log. */
  async assertOwned(): Promise<void> {
    const loss = await this.findLoss();
    if (loss !== null) throw new WriterPoisonedError(loss);
  }

  async open(path: string, mode: OpenMode): Promise<StorageFile> {
    if (mode === "create") await this.assertOwned();
    return await this.#inner.open(path, mode);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.assertOwned();
    const released = [...this.#held].filter(([path]) => path === from || path === to);
    for (const [path] of released) this.#held.delete(path);
    try {
      await this.#inner.rename(from, to);
    } catch (error) {
      for (const [path, identity] of released) this.#held.set(path, identity);
      throw error;
    }
    if (to.startsWith(SEGMENTS_FOLDER)) this.#releaseSegments();
    await this.hold(to);
  }

  async remove(path: string): Promise<void> {
    await this.assertOwned();
    this.#held.delete(path);
    await this.#inner.remove(path);
  }

  async makeFolder(path: string): Promise<void> {
    await this.assertOwned();
    await this.#inner.makeFolder(path);
  }

  list(folder: string): Promise<string[] | null> {
    return this.#inner.list(folder);
  }

  syncFolder(path: string): Promise<void> {
    return this.#inner.syncFolder(path);
  }

  identity(path: string): Promise<string | null> {
    return this.#inner.identity(path);
  }

  /** Only the newest segment is held, since there can be ten thousand. */
  #releaseSegments(): void {
    for (const path of this.#held.keys()) {
      if (path.startsWith(`${SEGMENTS_FOLDER}/`)) this.#held.delete(path);
    }
  }
}
