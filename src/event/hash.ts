/** SHA-256 by node:crypto; a call of WebCrypto costs ten times as much as hashing an event. */
import { createHash, type Hash, hash } from "node:crypto";

/** SHA-256 of bytes, or of a text in UTF-8, as 64 lowercase hex digits. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

const SHA256_HEX = /^[0-9a-f]{64}$/;

/** Whether a value is 64 lowercase hex digits. */
export function isSha256Hex(value: unknown): value is string {
  return typeof value === "string" && SHA256_HEX.test(value);
}

/** SHA-256 of blocks; a single one costs as much as `sha256Hex()`. */
export class Sha256Stream {
  #hasher: Hash | null = null;

  update(block: Uint8Array): void {
    this.#hasher ??= createHash("sha256");
    this.#hasher.update(block);
  }

  /** Hashes the last block and starts over; returns 64 lowercase hex digits. */
  end(block: Uint8Array): string {
    const hasher = this.#hasher;
    this.#hasher = null;
    return hasher === null ? sha256Hex(block) : hasher.update(block).digest("hex");
  }
}
