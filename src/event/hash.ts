/**
 * SHA-256 by the one-shot `hash()` of node:crypto: WebCrypto costs a promise and a thread hop for
 * each call, more than ten times the work of hashing an event.
 */
import { createHash, type Hash, hash } from "node:crypto";

/** SHA-256 of bytes, or of a text in UTF-8, as 64 lowercase hex digits. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

const SHA256_HEX = /^[0-9a-f]{64}$/;

/** Whether something is 64 lowercase hex digits. */
export function isSha256Hex(value: unknown): value is string {
  return typeof value === "string" && SHA256_HEX.test(value);
}

/** SHA-256 of bytes that come in blocks; for a single one it costs what `sha256Hex()` does. */
export class Sha256Stream {
  #hasher: Hash | null = null;

  update(block: Uint8Array): void {
    this.#hasher ??= createHash("sha256");
    this.#hasher.update(block);
  }

  /** Takes the last block; 64 lowercase hex digits. The next text begins. */
  end(block: Uint8Array): string {
    const hasher = this.#hasher;
    this.#hasher = null;
    return hasher === null ? sha256Hex(block) : hasher.update(block).digest("hex");
  }
}
