/**
 * Finds batches that a log has twice, in bounded memory: of each `(source, batch_id)` the first 128
 * bits of a SHA-256 are kept in a table. When the table is full it goes on with the lower half of
 * their range, and the rest of the range is left for another pass over the log.
 */
import { sha256Hex } from "../../event/hash.ts";

/**
 * Places for the identities of batches, 16 bytes each, that a verification keeps at a time: three
 * million batches in 64 MiB, half as much again while it grows. A log with more is read again,
 * without its payloads.
 */
const IDENTITY_SLOTS_MAX = 4 * 1024 * 1024;

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
  /** The identity that is being taken. */
  readonly #next = new Uint32Array(WORDS);

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
    putIdentity(this.#next, 0, source, batchId);
    return this.#addWords(this.#next, 0);
  }

  /**
   * Takes the identities of an `IdentityList`, of which no two are the same.
   * @returns false, and takes none, when one is known.
   */
  addAll(words: Uint32Array): boolean {
    for (let at = 0; at < words.length; at += WORDS) {
      if (this.#has(words, at)) return false;
    }
    for (let at = 0; at < words.length; at += WORDS) this.#addWords(words, at);
    return true;
  }

  #has(words: Uint32Array, at: number): boolean {
    return this.#isInRange(words[at]!) && !isFree(this.#words, placeOf(this.#words, words, at));
  }

  #addWords(words: Uint32Array, at: number): boolean {
    if (!this.#isInRange(words[at]!)) return true;
    if (!insert(this.#words, words, at)) return false;
    this.#count += 1;
    const slots = this.#words.length / WORDS;
    if (4 * this.#count > 3 * slots) this.#makeRoom(slots);
    return true;
  }

  #isInRange(first: number): boolean {
    return first >= this.#from && first < this.#to;
  }

  #makeRoom(slots: number): void {
    if (slots >= this.#slotsMax) return this.#narrow(slots);
    const words = this.#words;
    this.#words = new Uint32Array(2 * words.length);
    for (let at = 0; at < words.length; at += WORDS) {
      if (!isFree(words, at)) insert(this.#words, words, at);
    }
  }

  /**
   * Goes on with the lower half of the range, in the memory that is there. What is in a run of
   * taken slots, between two free ones, belongs into it: each run is taken out and put back alone.
   */
  #narrow(slots: number): void {
    this.#to = this.#from + Math.ceil((this.#to - this.#from) / 2);
    const table = this.#words;
    let free = 0;
    while (!isFree(table, WORDS * free)) free += 1;
    let run: Uint32Array[] = [];
    this.#count = 0;
    for (let next = free + 1; next <= free + slots; next++) {
      const at = WORDS * (next % slots);
      if (!isFree(table, at)) {
        if (table[at]! < this.#to) run.push(table.slice(at, at + WORDS));
        table.fill(0, at, at + WORDS);
      } else if (run.length > 0) {
        for (const words of run) insert(table, words, 0);
        this.#count += run.length;
        run = [];
      }
    }
  }
}

/** Identities in their order, to be taken by a set later. */
export class IdentityList {
  #words = new Uint32Array(WORDS * SLOTS_MIN);
  #length = 0;

  /** The identities, as many words each as the sets have. */
  get words(): Uint32Array {
    return this.#words.slice(0, this.#length);
  }

  add(source: string, batchId: string): void {
    if (this.#length === this.#words.length) {
      const words = this.#words;
      this.#words = new Uint32Array(2 * words.length);
      this.#words.set(words);
    }
    putIdentity(this.#words, this.#length, source, batchId);
    this.#length += WORDS;
  }
}

/** Whether no two identities of a list are the same; false too when that is not known. */
export function areDistinct(words: Uint32Array): boolean {
  const set = new IdentitySet();
  for (let at = 0; at < words.length; at += WORDS) {
    if (!set.addAll(words.subarray(at, at + WORDS))) return false;
  }
  return set.left === null;
}

function putIdentity(into: Uint32Array, at: number, source: string, batchId: string): void {
  // In hex, which costs less than the bytes in a buffer of their own.
  const digits = sha256Hex(`${source}\n${batchId}`);
  for (let word = 0; word < WORDS; word++) {
    into[at + word] = parseInt(digits.slice(8 * word, 8 * word + 8), 16);
  }
}

function isFree(words: Uint32Array, at: number): boolean {
  return (words[at]! | words[at + 1]! | words[at + 2]! | words[at + 3]!) === 0;
}

/** Where an identity is in a table, or the free slot where it would be. */
function placeOf(table: Uint32Array, words: Uint32Array, at: number): number {
  const lastSlot = table.length / WORDS - 1;
  let slot = words[at + 1]! & lastSlot;
  while (!isFree(table, WORDS * slot) && !isSame(table, WORDS * slot, words, at)) {
    slot = (slot + 1) & lastSlot;
  }
  return WORDS * slot;
}

function isSame(a: Uint32Array, aAt: number, b: Uint32Array, bAt: number): boolean {
  return a[aAt] === b[bAt] && a[aAt + 1] === b[bAt + 1] && a[aAt + 2] === b[bAt + 2] &&
    a[aAt + 3] === b[bAt + 3];
}

/** Puts an identity in the first free slot from its own on; false when it is there already. */
function insert(table: Uint32Array, words: Uint32Array, at: number): boolean {
  const place = placeOf(table, words, at);
  if (!isFree(table, place)) return false;
  for (let word = 0; word < WORDS; word++) table[place + word] = words[at + word]!;
  return true;
}
