/**
 * The hash FNV-1a with 32 bits (draft-eastlake-fnv, section 5): cheap for the few bytes of a key,
 * and no more than that; against keys that are chosen to collide it takes a secret start.
 */
import { randomBytes } from "node:crypto";

const FNV_PRIME = 0x01000193;
const FNV_OFFSET_BASIS = 0x811c9dc5;

/** Hash of the bytes [start, end), as a signed integer. */
export function fnv1a(
  bytes: Uint8Array,
  start: number,
  end: number,
  basis: number = FNV_OFFSET_BASIS,
): number {
  let hash = basis;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, FNV_PRIME);
  return hash;
}

/** So that nobody can know which keys would fall together. */
const SEED = randomBytes(4).readUInt32LE();

/** FNV-1a with a start that nobody knows, its bits mixed once more at the end; without sign. */
export function secretHash(bytes: Uint8Array, start: number, end: number): number {
  let hash = fnv1a(bytes, start, end, SEED);
  hash = Math.imul(hash ^ hash >>> 15, 0x85ebca6b);
  return (hash ^ hash >>> 13) >>> 0;
}
