/**
 * Finds batches that a log has twice, in bounded memory: of each `(source, batch_id)` the first 128
 * bits of a SHA-256 are kept in a table. When the table is full it goes on with the lower half of
 * their range, and the rest of the range is left for another pass over the log.
 */
import { sha256Hex } from "../event/hash.ts";
import { IDENTITY_SLOTS_MAX } from "../limits.ts";

/** 32-bit words of an identity. A free slot has all zeros, which is no hash anyone has seen. */
const WORDS = 4;
const SLOTS_MIN = 1024;
/** Identities are passed over by their first word. */
const RANGE_END = 2 ** 32;

export class IdentitySet {
  readonly #slotsMax: number;
  /** Takes the identities whose first word lies in [#from, #to). */
  readonly #from: number;
  #to = RANGE_END;
  #words = new Uint32Array(WORDS * SLOTS_MIN);
  #count = 0;

  /**
   * @param from where the range begins: 0, or what the set of the pass before left.
   * @param slotsMax a power of two.
   */
  constructor(from = 0, slotsMax: number = IDENTITY_SLOTS_MAX) {
    this.#from = from;
    this.#slotsMax = slotsMax;
  }

  /** Where the next pass has to begin; null when this one has seen all identities. */
  get left(): number | null {
    return this.#to === RANGE_END ? null : this.#to;
  }

  /** Takes an identity. @returns false when it is known. */
  add(source: string, batchId: string): boolean {
    // In hex, which costs less than the bytes in a buffer of their own.
    const digits = sha256Hex(`${source}\n${batchId}`);
    const first = wordAt(digits, 0);
    if (first < this.#from || first >= this.#to) return true;
    const [second, third, fourth] = [wordAt(digits, 1), wordAt(digits, 2), wordAt(digits, 3)];
    if (!insert(this.#words, first, second, third, fourth)) return false;
    this.#count += 1;
    const slots = this.#words.length / WORDS;
    if (4 * this.#count > 3 * slots) this.#makeRoom(slots);
    return true;
  }

  #makeRoom(slots: number): void {
    const isLargest = slots >= this.#slotsMax;
    if (isLargest) this.#to = this.#from + Math.ceil((this.#to - this.#from) / 2);
    const words = this.#words;
    this.#words = new Uint32Array(WORDS * (isLargest ? slots : 2 * slots));
    this.#count = 0;
    for (let at = 0; at < words.length; at += WORDS) {
      if (isFree(words, at) || words[at]! >= this.#to) continue;
      insert(this.#words, words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!);
      this.#count += 1;
    }
  }
}

function wordAt(digits: string, number: number): number {
  return parseInt(digits.slice(8 * number, 8 * number + 8), 16);
}

function isFree(words: Uint32Array, at: number): boolean {
  return (words[at]! | words[at + 1]! | words[at + 2]! | words[at + 3]!) === 0;
}

/** Puts an identity in the first free slot from its own on; false when it is there already. */
function insert(words: Uint32Array, a: number, b: number, c: number, d: number): boolean {
  const lastSlot = words.length / WORDS - 1;
  let slot = b & lastSlot;
  while (!isFree(words, WORDS * slot)) {
    const at = WORDS * slot;
    const isKnown = words[at] === a && words[at + 1] === b && words[at + 2] === c &&
      words[at + 3] === d;
    if (isKnown) return false;
    slot = (slot + 1) & lastSlot;
  }
  words.set([a, b, c, d], WORDS * slot);
  return true;
}
