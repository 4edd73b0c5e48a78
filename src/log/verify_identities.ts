/**
 * Finds batches that a log has twice, in bounded memory: of each `(source, batch_id)` the first 128
 * bits of a SHA-256 are kept in a table. When the table is full it goes on with the lower half of
 * their range, and the rest of the range is left for another pass over the log.
 */
import { sha256 } from "../event/hash.ts";
import { IDENTITY_SLOTS_MAX } from "../limits.ts";

/** 32-bit words of an identity. All zeros, which no identity is in earnest, is a free slot. */
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
    const bytes = sha256(`${source}\n${batchId}`);
    const { buffer, byteOffset } = bytes;
    const view = new DataView(buffer, byteOffset, 4 * WORDS);
    const first = view.getUint32(0);
    if (first < this.#from || first >= this.#to) return true;
    const identity = [first, view.getUint32(4), view.getUint32(8), view.getUint32(12)];
    if (!insert(this.#words, identity)) return false;
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
      const identity = words.subarray(at, at + WORDS);
      if (identity.every((word) => word === 0) || identity[0]! >= this.#to) continue;
      insert(this.#words, identity);
      this.#count += 1;
    }
  }
}

/** Puts an identity in the first free slot from its own on; false when it is there already. */
function insert(words: Uint32Array, identity: ArrayLike<number>): boolean {
  const slots = words.length / WORDS;
  for (let slot = identity[1]! & (slots - 1);; slot = (slot + 1) & (slots - 1)) {
    const at = WORDS * slot;
    if (
      words[at] === identity[0] && words[at + 1] === identity[1] &&
      words[at + 2] === identity[2] && words[at + 3] === identity[3]
    ) return false;
    if ((words[at]! | words[at + 1]! | words[at + 2]! | words[at + 3]!) === 0) {
      words.set(identity, at);
      return true;
    }
  }
}
