/** What every kind of store for copies of sealed segments offers. */
import { Buffer } from "node:buffer";
import type { Readable } from "node:stream";

/** A local file to copy, with its expected size and hash. */
export interface SourceFile {
  path: string;
  bytes: number;
  /** 64 lowercase hex digits. */
  sha256: string;
}

/** A file store. Names are relative paths with slashes; writes are atomic. */
export interface SegmentStore {
  /** Returns the size of a file in bytes, or null if it does not exist. */
  size(name: string): Promise<number | null>;
  /** @throws {Error} if the stored bytes do not match the hash. */
  put(name: string, source: SourceFile): Promise<void>;
  putSmall(name: string, bytes: Uint8Array): Promise<void>;
  /** Opens a file for reading. Returns null if it does not exist. */
  get(name: string): Promise<Readable | null>;
}

/** Reads up to `limitBytes`, and closes the stream. */
export async function readStart(content: Readable, limitBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of content) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= limitBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, limitBytes);
}
