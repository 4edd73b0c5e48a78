/** Appends to a file. Buffers bytes until `flush()`, which hashes and writes them. */
import { Buffer } from "node:buffer";
import { createHash, type Hash } from "node:crypto";
import type { StorageFile } from "../storage/storage.ts";

/** Bytes written between syncs. A larger value leaves more dirty pages, which delay commits. */
const SYNC_BYTES = 2 * 1024 * 1024;

export class FileSink {
  readonly #file: StorageFile;
  readonly #hash: Hash = createHash("sha256");
  #buffered: Uint8Array[] = [];
  #offset = 0;
  #writtenBytes = 0;
  #syncedBytes = 0;

  constructor(file: StorageFile) {
    this.#file = file;
  }

  /** File offset of the next append. */
  get offset(): number {
    return this.#offset;
  }

  /** Appends bytes, which must not change until flushed; returns their offset. */
  append(bytes: Uint8Array): number {
    const offset = this.#offset;
    this.#buffered.push(bytes);
    this.#offset += bytes.length;
    return offset;
  }

  async flush(): Promise<void> {
    const bytes = Buffer.concat(this.#buffered);
    this.#buffered = [];
    this.#hash.update(bytes);
    await this.#file.write(bytes, this.#writtenBytes);
    this.#writtenBytes += bytes.length;
    if (this.#writtenBytes - this.#syncedBytes < SYNC_BYTES) return;
    await this.#file.sync();
    this.#syncedBytes = this.#writtenBytes;
  }

  /** Returns the SHA-256 of all written bytes as 64 hex digits. Must be called only once. */
  digest(): string {
    return this.#hash.digest("hex");
  }
}
