/** XXH64 with seed 0 (Cyan4973/xxHash, doc/xxhash_spec.md), the hash for Parquet Bloom filters. */
import xxhash from "xxhash-wasm";

const { h64Raw } = await xxhash();

/** The two halves of a hash, unsigned. */
export interface Hash64 {
  high: number;
  low: number;
}

export function xxhash64(bytes: Uint8Array): Hash64 {
  const hash = h64Raw(bytes);
  return { high: Number(hash >> 32n), low: Number(BigInt.asUintN(32, hash)) };
}
