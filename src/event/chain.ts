/**
 * The history chain: one hash that commits to every event and its place. From the genesis head on,
 * head_n = H(raw head_{n-1} || raw event_hash_n), each 32 bytes.
 */
import { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import { sha256Hex } from "./hash.ts";

const HASH_BYTES = 32;

/** Head of the empty history, in hex. */
export const GENESIS_HEAD_HEX: string = sha256Hex("service/genesis/v1");

/** Follows the chain event by event. */
export class HistoryChain {
  /** The head, then the event hash that comes next. */
  readonly #link = Buffer.alloc(2 * HASH_BYTES);

  /** @param head 64 lowercase hex digits. */
  constructor(head: string = GENESIS_HEAD_HEX) {
    putHex(head, this.#link, 0);
  }

  /** The head after all events so far, 64 lowercase hex digits. */
  get head(): string {
    return this.#link.toString("hex", 0, HASH_BYTES);
  }

  /**
   * Takes the next event into the chain.
   * @param eventHash 64 lowercase hex digits.
   */
  append(eventHash: string): void {
    putHex(eventHash, this.#link, HASH_BYTES);
    putHex(sha256Hex(this.#link), this.#link, 0);
  }
}

/** Above the value of any hex digit. */
const NO_DIGIT = 0x10;
const DIGIT_VALUES = new Uint8Array(0x80).fill(NO_DIGIT);
for (let value = 0; value < 0x10; value++) {
  DIGIT_VALUES[value.toString(16).charCodeAt(0)] = value;
}

/** Decodes a hash. By table, because a call of Buffer costs as much as the hash itself. */
function putHex(hashHex: string, into: Uint8Array, start: number): void {
  assert(hashHex.length === 2 * HASH_BYTES, "a hash has 64 hex digits");
  let seen = 0;
  for (let index = 0; index < HASH_BYTES; index++) {
    const high = DIGIT_VALUES[hashHex.charCodeAt(2 * index)] ?? NO_DIGIT;
    const low = DIGIT_VALUES[hashHex.charCodeAt(2 * index + 1)] ?? NO_DIGIT;
    seen |= high | low;
    into[start + index] = high << 4 | low;
  }
  assert(seen < NO_DIGIT, "a hash has lowercase hex digits alone");
}
