/**
 * The hash FNV-1a with 32 bits (draft-eastlake-fnv, section 5): cheap for the few bytes of a key,
 * and no more than that; against keys that are chosen to collide it takes a secret start.
 */

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
