/**
 * Detects possible duplicate batches by sorting 64 bits of each batch's SHA-256 over `(source,
 * batch_id)`, which takes 16 bytes per batch. Batches with equal hashes must be compared by name.
 */
import { sha256Hex } from "../../event/hash.ts";
import { joined } from "../index/entries.ts";
import type { BatchIdentity } from "../wal/history_check.ts";

/** Number of leading hex digits of a SHA-256 used as the hash. */
const HASH_DIGITS = 16;

/** Returns a hash that is equal for batches with the same identity. */
export function batchHash({ source, batch_id }: BatchIdentity): bigint {
  return BigInt("0x" + sha256Hex(`${source}\n${batch_id}`).slice(0, HASH_DIGITS));
}

/** Returns the hashes that occur more than once in all `parts` together. */
export function repeatedIn(parts: readonly BigUint64Array[]): Set<bigint> {
  const sorted = joined(parts).sort();
  return new Set(sorted.filter((hash, at) => hash === sorted[at - 1]));
}
