/**
 * The end of a file that is being written: bytes are held until they are flushed, then hashed and
 * written behind those before.
 */
import { Buffer } from "node:buffer";
import { createHash, type Hash } from "node:crypto";
import type { StorageFile } from "../storage/storage.ts";

/**
 * The file is synced whenever so much more of it has been written: a larger heap of unwritten bytes
 * would hold up the sync of a commit beside it.
 */
const SYNC_BYTES = 2 * 1024 * 1024;

/** A piece of at least this size is written alone, not copied together with others. */
const LARGE_PIECE_BYTES = 1024 * 1024;

export class FileSink {
  readonly #file: StorageFile;
  readonly #hash: Hash = createHash("sha256");
  /** What is held, in order: pieces to be written alone, then those to be written together. */
  #pieces: Uint8Array[] = [];
  #smallPieces: Uint8Array[] = [];
  #offset = 0;
  #writtenBytes = 0;
  #syncedBytes = 0;

  constructor(file: StorageFile) {
    this.#file = file;
  }

  /** Where in the file the next piece comes. */
  get offset(): number {
    return this.#offset;
  }

  /** Puts bytes behind those before, and returns where; they must not change until flushed. */
  append(bytes: Uint8Array): number {
    const offset = this.#offset;
    this.#offset += bytes.length;
    if (bytes.length < LARGE_PIECE_BYTES) {
      this.#smallPieces.push(bytes);
    } else {
      this.#pieces.push(this.#takeSmall(), bytes);
    }
    return offset;
  }

  /** Writes what is held. */
  async flush(): Promise<void> {
    const pieces = [...this.#pieces, this.#takeSmall()];
    this.#pieces = [];
    for (const piece of pieces) {
      this.#hash.update(piece);
      await this.#file.write(piece, this.#writtenBytes);
      this.#writtenBytes += piece.length;
    }
    if (this.#writtenBytes - this.#syncedBytes < SYNC_BYTES) return;
    await this.#file.sync();
    this.#syncedBytes = this.#writtenBytes;
  }

  /** SHA-256 of all that was written, 64 hex digits. To be called once. */
  digest(): string {
    return this.#hash.digest("hex");
  }

  #takeSmall(): Buffer {
    const bytes = Buffer.concat(this.#smallPieces);
    this.#smallPieces = [];
    return bytes;
  }
}
