/**
 * Detects possible duplicate batches by sorting 64 bits of each batch's SHA-256 over `(source,
 * batch_id)`, which takes 8 bytes per batch. Batches with equal hashes must be compared by name.
 */
import { sha256Hex } from "../../event/hash.ts";
import type { BatchIdentity } from "./history_check.ts";

const HASHES_MIN = 1024;

/** Number of leading hex digits of a SHA-256 used as the hash. */
const HASH_DIGITS = 16;

/** Returns a hash that is equal for batches with the same identity. */
export function batchHash({ source, batch_id }: BatchIdentity): bigint {
  return BigInt("0x" + sha256Hex(`${source}\n${batch_id}`).slice(0, HASH_DIGITS));
}

export class BatchHashes {
  #hashes = new BigUint64Array(HASHES_MIN);
  #length = 0;

  add(hash: bigint): void {
    if (this.#length === this.#hashes.length) {
      const smaller = this.#hashes;
      this.#hashes = new BigUint64Array(2 * smaller.length);
      this.#hashes.set(smaller);
    }
    this.#hashes[this.#length++] = hash;
  }

  /** Returns the hashes added more than once. Called once, after the last `add()`. */
  takeRepeated(): Set<bigint> {
    const sorted = this.#hashes.subarray(0, this.#length).sort();
    const repeated = new Set<bigint>();
    for (let at = 1; at < sorted.length; at++) {
      if (sorted[at] === sorted[at - 1]) repeated.add(sorted[at]!);
    }
    return repeated;
  }
}
