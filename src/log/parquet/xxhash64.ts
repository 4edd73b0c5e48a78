/** XXH64 with seed 0 (Cyan4973/xxHash, doc/xxhash_spec.md), the hash for Parquet Bloom filters. */
import xxhash from "xxhash-wasm";
import { assert } from "../../assert.ts";

let h64Raw: ((bytes: Uint8Array) => bigint) | null = null;

/**
 * Resolves when `xxhash64()` can be called. No module awaits it at the top level: V8 aborts the
 * process when a worker thread is terminated while one of its modules awaits.
 */
export const xxhash64Loaded: Promise<void> = xxhash().then((api) => {
  h64Raw = api.h64Raw;
});

/** The two halves of a hash, unsigned. */
export interface Hash64 {
  high: number;
  low: number;
}

export function xxhash64(bytes: Uint8Array): Hash64 {
  assert(h64Raw !== null, "xxhash64() must be loaded before its first call");
  const hash = h64Raw(bytes);
  return { high: Number(hash >> 32n), low: Number(BigInt.asUintN(32, hash)) };
}
