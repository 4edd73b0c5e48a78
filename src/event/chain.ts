/**
 * The history chain: one hash that commits to every event and its position. From the genesis head,
 * head_n = H(raw head_{n-1} || raw event_hash_n), each 32 bytes.
 */
import { assert } from "../assert.ts";
import { DIGIT_VALUES, NO_DIGIT, sha256Hex } from "./hash.ts";

const HASH_BYTES = 32;

/** Head of the empty history, in hex. */
export const GENESIS_HEAD_HEX: string = sha256Hex("service/genesis/v1");

/** A head and the hash of the event that follows it. */
const link = new Uint8Array(2 * HASH_BYTES);

/** Returns the head after an event. Heads and hashes are 64 lowercase hex digits. */
export function nextHead(head: string, eventHash: string): string {
  decodeHex(head, link, 0);
  decodeHex(eventHash, link, HASH_BYTES);
  return sha256Hex(link);
}

/** Decodes a hash with a lookup table. A Buffer call would cost as much as computing the hash. */
function decodeHex(hashHex: string, into: Uint8Array, start: number): void {
  assert(hashHex.length === 2 * HASH_BYTES, "a hash has 64 hex digits");
  let seen = 0;
  for (let at = 0; at < HASH_BYTES; at++) {
    const high = DIGIT_VALUES[hashHex.charCodeAt(2 * at)] ?? NO_DIGIT;
    const low = DIGIT_VALUES[hashHex.charCodeAt(2 * at + 1)] ?? NO_DIGIT;
    seen |= high | low;
    into[start + at] = high << 4 | low;
  }
  assert(seen < NO_DIGIT, "a hash has only lowercase hex digits");
}
