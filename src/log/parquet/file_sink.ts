/** Appends to a file: bytes are buffered until `flush()`, which hashes and writes them. */
import { Buffer } from "node:buffer";
import { createHash, type Hash } from "node:crypto";
import type { StorageFile } from "../storage/storage.ts";

/** Written bytes after which the file is synced: more dirty pages would delay commits beside it. */
const SYNC_BYTES = 2 * 1024 * 1024;

/** A piece of at least this size is written alone, not copied into a larger write. */
const LARGE_PIECE_BYTES = 1024 * 1024;

export class FileSink {
  readonly #file: StorageFile;
  readonly #hash: Hash = createHash("sha256");
  /** Buffered bytes in order: pieces to write alone, then those to write together. */
  #pieces: Uint8Array[] = [];
  #smallPieces: Uint8Array[] = [];
  #offset = 0;
  #writtenBytes = 0;
  #syncedBytes = 0;

  constructor(file: StorageFile) {
    this.#file = file;
  }

  /** Offset of the next piece in the file. */
  get offset(): number {
    return this.#offset;
  }

  /** Appends bytes, which must not change until flushed; returns their offset. */
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

  /** Writes the buffered bytes. */
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

  /** SHA-256 of all written bytes, 64 hex digits. Call once. */
  digest(): string {
    return this.#hash.digest("hex");
  }

  #takeSmall(): Buffer {
    const bytes = Buffer.concat(this.#smallPieces);
    this.#smallPieces = [];
    return bytes;
  }
}
