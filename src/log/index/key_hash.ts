/**
 * Hashes of the keys that an index finds: 48 bits of the SHA-256 of an unambiguous text. Nobody can
 * construct keys whose hashes are equal in numbers, so a lookup stays cheap with any keys. Among
 * 10^9 keys, one lookup in 300,000 meets another key's hash and costs a read.
 */
import { hash } from "node:crypto";

/** An integer below 2^48. */
export type KeyHash = number;

export const KEY_HASHES: KeyHash = 2 ** 48;
const HASH_DIGITS = 12;

/** Returns the lowest hash of a step, where `steps` of the same size cover all hashes. */
export function hashBound(step: number, steps: number): KeyHash {
  return Math.floor(step * KEY_HASHES / steps);
}

/** No source contains a space. */
export function batchHash(source: string, batchId: string): KeyHash {
  return keyHash(`batch ${source} ${batchId}`);
}

/** @param key see `streamKey()` and `sourceKey()`. */
export function streamHash(key: string): KeyHash {
  return keyHash(`stream ${key}`);
}

/** Hashes a value of a column, in any source. */
export function valueHash(column: "record_key" | "stream", value: string): KeyHash {
  return keyHash(`${column}=${value}`);
}

/** This conversion is the fastest on both runtimes. */
function keyHash(text: string): KeyHash {
  return Number("0x" + hash("sha256", text, "hex").slice(0, HASH_DIGITS));
}
