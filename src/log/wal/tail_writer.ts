/**
 * Appends commits to the tail and makes them durable. The outcome of a commit is durable, absent or
 * unknown. After an unknown outcome, the writer accepts no more commits. It never retries an fsync,
 * since the kernel may have dropped the pages that it could not write.
 */
import type { Buffer } from "node:buffer";
import { freeOwnMemory } from "../../free_memory.ts";
import { RESERVED_BYTES, RESERVING_TAIL_BYTES_MIN } from "../../limits.ts";
import type { BuiltCommit } from "./commit_builder.ts";
import type { CommitFile } from "./commit_file.ts";
import { reservedKey, reservedSpace } from "./reserved_space.ts";
import { StorageFullError, WriterPoisonedError } from "../storage/errors.ts";
import { type CallMode, isNoRoom } from "../storage/storage.ts";

/**
 * A commit is quick if its write and sync together take at most this long. After a quick one, the
 * only batch that is waiting is committed with blocking calls, since a round trip to the thread
 * pool takes longer than the sync. If the disk becomes slow, one sync blocks other clients.
 */
const QUICK_COMMIT_MS = 1;
/**
 * The largest commit that may block or reserve space. How fast small commits are says little about
 * large ones, and with large ones, reserved space would double what is written.
 */
const SMALL_COMMIT_BYTES_MAX = 64 * 1024;
/** One in this many commits is pooled. Only then can batches from other clients queue up. */
const COMMITS_PER_PROBE = 16;

export class TailWriter {
  readonly #tail: CommitFile;
  #poison: WriterPoisonedError | null = null;
  /** Consecutive quick commits of one batch each. */
  #quickRun = 0;
  /** End of the reserved space; 0 if nothing was reserved. */
  #reservedEnd = 0;
  #reservedKey: Uint8Array | null = null;

  constructor(tail: CommitFile) {
    this.#tail = tail;
  }

  /** Why this writer has stopped accepting commits; null if it has not. */
  get poison(): WriterPoisonedError | null {
    return this.#poison;
  }

  /**
   * Appends a commit, which is durable when this resolves. Calls must not overlap.
   * @throws {StorageFullError} if the disk is full; the commit was undone.
   * @throws {WriterPoisonedError} if the outcome of this commit or an earlier one is unknown.
   */
  async append(built: BuiltCommit): Promise<void> {
    if (this.#poison !== null) throw this.#poison;
    const { commit, frame: bytes, growth } = built;
    const offset = this.#tail.endBytes;
    // A clean-shutdown marker reserves nothing.
    const isDue = commit.batches.length > 0 && bytes.length <= SMALL_COMMIT_BYTES_MAX &&
      offset >= RESERVING_TAIL_BYTES_MIN && offset + bytes.length > this.#reservedEnd;
    const written = isDue ? await this.#withReserve(offset, bytes) : bytes;
    const isLone = commit.batches.length === 1 && written.length <= SMALL_COMMIT_BYTES_MAX;
    const isBlocking = isLone && this.#quickRun % COMMITS_PER_PROBE > 0;
    const mode = isBlocking ? "blocking" : "pooled";
    const startMs = performance.now();
    try {
      await this.#tail.file.write(written, offset, mode);
    } catch (error) {
      if (!isNoRoom(error)) throw this.poisonBy("a write to the tail failed", error);
      await this.#undo(offset);
      // The commit may fit without the space. It counts as reserved, so it is not tried again.
      if (written !== bytes) return await this.append(built);
      throw new StorageFullError(`no space for a ${bytes.length}-byte commit`, { cause: error });
    }
    await this.#sync(mode);
    const isQuick = isLone && performance.now() - startMs <= QUICK_COMMIT_MS;
    this.#quickRun = isQuick ? this.#quickRun + 1 : 0;
    try {
      this.#tail.add(commit, bytes, growth);
    } catch (error) {
      throw this.poisonBy("a written commit contradicts the in-memory state", error);
    }
    freeOwnMemory(bytes);
  }

  /** Ends the file with its last commit. @throws {WriterPoisonedError} */
  async trim(): Promise<void> {
    if (this.#reservedEnd > 0) await this.#undo(this.#tail.endBytes);
  }

  /** Returns a commit followed by reserved space, or without it if the tail cannot be read. */
  async #withReserve(offset: number, bytes: Buffer): Promise<Buffer> {
    this.#reservedKey ??= await reservedKey(this.#tail.file).catch(() => null);
    if (this.#reservedKey === null) return bytes;
    const written = reservedSpace(this.#reservedKey, offset, bytes.length + RESERVED_BYTES);
    written.set(bytes);
    this.#reservedEnd = offset + written.length;
    return written;
  }

  /** Stops the writer permanently; returns the error that every later append throws. */
  poisonBy(what: string, cause: unknown): WriterPoisonedError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    this.#poison = new WriterPoisonedError(`${what}: ${reason}`, { cause });
    return this.#poison;
  }

  /** Removes reserved space, or a commit that did not fit on the disk. */
  async #undo(offset: number): Promise<void> {
    await this.#tail.file.truncate(offset).catch((error) => {
      throw this.poisonBy("the tail could not be truncated", error);
    });
    await this.#sync();
  }

  async #sync(mode?: CallMode): Promise<void> {
    await this.#tail.file.sync(mode).catch((error) => {
      throw this.poisonBy("an fsync of the tail failed", error);
    });
  }
}
