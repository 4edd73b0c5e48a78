/**
 * Writes commits to the end of the tail and makes them durable. A commit's outcome is always one of
 * three: durable, certainly not there, or unknown; after an unknown one the writer takes no more
 * (contract: fsync is never retried, since the kernel may have dropped the pages it could not
 * write).
 */
import { Buffer } from "node:buffer";
import type { BuiltCommit } from "./commit_builder.ts";
import type { CommitFile } from "./commit_file.ts";
import { StorageFullError, WriterPoisonedError } from "../storage/errors.ts";
import type { RecentCommits } from "./recent_commits.ts";
import { isNoRoom } from "../storage/storage.ts";

export class TailWriter {
  readonly #tail: CommitFile;
  readonly #recent: RecentCommits;
  #syncNames: (() => Promise<void>) | null = null;
  #poison: WriterPoisonedError | null = null;

  /** @param recent takes in each durable commit. */
  constructor(tail: CommitFile, recent: RecentCommits) {
    this.#tail = tail;
    this.#recent = recent;
  }

  /** Why this writer takes no more commits; null while it does. */
  get poison(): WriterPoisonedError | null {
    return this.#poison;
  }

  /** Whether the name of the tail is durable. */
  get isSettled(): boolean {
    return this.#syncNames === null;
  }

  /**
   * Appends a commit; it is durable when this returns. One call at a time.
   * @throws {StorageFullError} there was no room; nothing of it is left.
   * @throws {WriterPoisonedError} its outcome is unknown, or that of an earlier one was.
   */
  async append(built: BuiltCommit): Promise<void> {
    if (this.#poison !== null) throw this.#poison;
    await this.#settleNames();
    const offset = this.#tail.endBytes;
    const bytes = Buffer.concat([built.header, ...built.lines]);
    try {
      await this.#tail.file.write(bytes, offset);
    } catch (error) {
      if (!isNoRoom(error)) throw this.poisonBy("a write to the tail failed", error);
      await this.#undo(offset);
      throw new StorageFullError(`no room for a commit of ${bytes.length} bytes`, { cause: error });
    }
    await this.#sync();
    this.#takeIn(built, offset);
  }

  /** Nothing of what is taken in shares memory with the commit. */
  #takeIn({ commit, header, lines }: BuiltCommit, offset: number): void {
    this.#tail.add(commit, lines, offset + header.length + commit.bytes);
    this.#recent.add(offset, [header, ...lines], this.#tail.lastEventId);
  }

  /**
   * The tail has got its name just now.
   * @param syncNames makes that durable; called before the next commit.
   */
  unsettle(syncNames: () => Promise<void>): void {
    this.#syncNames = syncNames;
  }

  /** Takes no more commits, and returns what it says from now on. */
  poisonBy(what: string, cause: unknown): WriterPoisonedError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    this.#poison = new WriterPoisonedError(`${what}: ${reason}`, { cause });
    return this.#poison;
  }

  /** No commit is acknowledged in a file that a crash could give another name. */
  async #settleNames(): Promise<void> {
    if (this.#syncNames === null) return;
    try {
      await this.#syncNames();
      this.#syncNames = null;
    } catch (error) {
      if (!isNoRoom(error)) throw this.poisonBy("an fsync of the log folder failed", error);
      throw new StorageFullError("no room for the name of the tail", { cause: error });
    }
  }

  /** Takes a commit that found no room off the end of the file again. */
  async #undo(offset: number): Promise<void> {
    try {
      await this.#tail.file.truncate(offset);
    } catch (error) {
      throw this.poisonBy("a commit without room could not be truncated", error);
    }
    await this.#sync();
  }

  async #sync(): Promise<void> {
    try {
      await this.#tail.file.sync();
    } catch (error) {
      throw this.poisonBy("an fsync of the tail failed", error);
    }
  }
}
