/**
 * The `Writer` through which `hyparquet-writer` writes a segment: streams row groups to the file,
 * hashes all bytes, and puts the footer's CRC-32 in front of the footer.
 */
import { Buffer } from "node:buffer";
import { createHash, type Hash } from "node:crypto";
import { ByteWriter } from "hyparquet-writer";
import type { StorageFile } from "../storage/storage.ts";
import { FOOTER_CRC_BYTES, footerCrc, TRAILER_BYTES } from "./segment_footer.ts";

/** Bytes written between syncs. A larger value leaves more dirty pages, which delay commits. */
const SYNC_BYTES = 2 * 1024 * 1024;
const INITIAL_BYTES = 1024 * 1024;

export class FileWriter extends ByteWriter {
  readonly #file: StorageFile;
  readonly #hash: Hash = createHash("sha256");
  #writtenBytes = 0;
  #syncedBytes = 0;

  constructor(file: StorageFile) {
    super(INITIAL_BYTES);
    this.#file = file;
  }

  /** Size of the file, once `finish()` has resolved. */
  get sizeBytes(): number {
    return this.#writtenBytes;
  }

  /** Writes the bytes that were collected. */
  async writeOut(): Promise<void> {
    await this.#write(this.getBytes());
    this.index = 0;
  }

  /** Called by `ParquetWriter` after the footer. */
  override async finish(): Promise<void> {
    const bytes = Buffer.from(this.buffer, 0, this.index);
    const footerBytes = bytes.readUInt32LE(bytes.length - TRAILER_BYTES);
    const footer = bytes.subarray(bytes.length - TRAILER_BYTES - footerBytes);
    const crc = Buffer.alloc(FOOTER_CRC_BYTES);
    crc.writeUInt32LE(footerCrc(footer));
    await this.#write(Buffer.concat([bytes.subarray(0, -footer.length), crc, footer]));
  }

  /** Returns the SHA-256 of all written bytes as 64 hex digits. Must be called only once. */
  digest(): string {
    return this.#hash.digest("hex");
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.#hash.update(bytes);
    await this.#file.write(bytes, this.#writtenBytes);
    this.#writtenBytes += bytes.length;
    if (this.#writtenBytes - this.#syncedBytes < SYNC_BYTES) return;
    await this.#file.sync();
    this.#syncedBytes = this.#writtenBytes;
  }
}
