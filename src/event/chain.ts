/**
 * The history chain: one hash that commits to every event and its position. From the genesis head,
 * head_n = H(raw head_{n-1} || raw event_hash_n), each 32 bytes.
 */
import { assert } from "../assert.ts";
import { sha256Hex } from "./hash.ts";
import { HASH_WORDS, hashLink } from "./sha256_link.ts";

/** Hex digits of one word of a hash. */
const WORD_DIGITS = 8;

/** Head of the empty history, in hex. */
export const GENESIS_HEAD_HEX: string = sha256Hex("service/genesis/v1");

/** Follows the chain event by event. */
export class HistoryChain {
  /** The head, then the next event hash. */
  readonly #link = new Int32Array(2 * HASH_WORDS);

  /** @param head 64 lowercase hex digits. */
  constructor(head: string = GENESIS_HEAD_HEX) {
    putHex(head, this.#link, 0);
  }

  /** The head after all events so far, 64 lowercase hex digits. */
  get head(): string {
    let head = "";
    for (const word of this.#link.subarray(0, HASH_WORDS)) {
      head += (word >>> 0).toString(16).padStart(WORD_DIGITS, "0");
    }
    return head;
  }

  /** Appends an event. @param eventHash 64 lowercase hex digits. */
  append(eventHash: string): void {
    putHex(eventHash, this.#link, HASH_WORDS);
    hashLink(this.#link);
  }
}

/** Above the value of any hex digit. */
const NO_DIGIT = 0x10;
const DIGIT_VALUES = new Uint8Array(0x80).fill(NO_DIGIT);
for (let value = 0; value < 0x10; value++) {
  DIGIT_VALUES[value.toString(16).charCodeAt(0)] = value;
}

/** Decodes a hash. By table: a Buffer call costs as much as the hash itself. */
function putHex(hashHex: string, into: Int32Array, startAt: number): void {
  assert(hashHex.length === HASH_WORDS * WORD_DIGITS, "a hash has 64 hex digits");
  let seen = 0;
  let digitAt = 0;
  for (let at = startAt; at < startAt + HASH_WORDS; at++) {
    let word = 0;
    for (const end = digitAt + WORD_DIGITS; digitAt < end; digitAt++) {
      const digit = DIGIT_VALUES[hashHex.charCodeAt(digitAt)] ?? NO_DIGIT;
      seen |= digit;
      word = word << 4 | digit;
    }
    into[at] = word;
  }
  assert(seen < NO_DIGIT, "a hash has lowercase hex digits alone");
}
