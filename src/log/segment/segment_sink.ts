/**
 * Where the Parquet writer puts a segment: bytes are held until a row group is complete, then
 * hashed and written to the end of the file.
 */
import { createHash, type Hash } from "node:crypto";
import { ByteWriter } from "hyparquet-writer";
import type { StorageFile } from "../storage/storage.ts";

/**
 * A segment being written is synced whenever so much more of it is: a larger heap of unwritten
 * bytes would hold up the sync of a commit beside it.
 */
const SEGMENT_SYNC_BYTES = 2 * 1024 * 1024;

/** Pages of at least this size are kept as they come instead of being copied. */
const LARGE_PIECE_BYTES = 1024 * 1024;

export class SegmentSink extends ByteWriter {
  readonly #file: StorageFile;
  readonly #hash: Hash = createHash("sha256");
  /** Bytes that stand before those in the buffer. */
  #held: Uint8Array[] = [];
  #writtenBytes = 0;
  #syncedBytes = 0;

  constructor(file: StorageFile) {
    super(LARGE_PIECE_BYTES);
    this.#file = file;
  }

  /** Size of what is in the file. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  override appendBytes(bytes: Uint8Array): void {
    if (bytes.length < LARGE_PIECE_BYTES) return super.appendBytes(bytes);
    // The writer makes every page anew and does not touch it again.
    this.#held.push(this.getBytes().slice(), bytes);
    this.index = 0;
    this.offset += bytes.length;
  }

  /** Called by the Parquet writer after each row group; it goes on when this is done. */
  async flush(): Promise<void> {
    const pieces = [...this.#held, this.getBytes()];
    for (const piece of pieces) {
      this.#hash.update(piece);
      await this.#file.write(piece, this.#writtenBytes);
      this.#writtenBytes += piece.length;
    }
    this.#held = [];
    this.index = 0;
    if (this.#writtenBytes - this.#syncedBytes >= SEGMENT_SYNC_BYTES) await this.#sync();
  }

  override finish(): Promise<void> {
    return this.flush();
  }

  async #sync(): Promise<void> {
    await this.#file.sync();
    this.#syncedBytes = this.#writtenBytes;
  }

  /** SHA-256 of all that was written, 64 hex digits. To be called once. */
  digest(): string {
    return this.#hash.digest("hex");
  }
}
