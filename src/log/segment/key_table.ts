/**
 * Numbers distinct keys, short byte strings, from 0 in the order in which they come: a hash table
 * in a few flat arrays, at a tenth of what a `Map` of strings takes, that a copy is cheap of.
 *
 * Invariant: `#slots` has, for each key, its number plus one at the first place that was free from
 * that of its hash on (linear probing), and at least a third of the places are free.
 */
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { freeOwnMemory } from "../../free_memory.ts";
import { fnv1a } from "./fnv1a.ts";
import { putBytes, sameBytes } from "../line/line_bytes.ts";

const FIRST_KEYS = 64;
const FIRST_BYTES = 2048;
/** So that nobody can know which keys would fall together. */
const SEED = randomBytes(4).readUInt32LE();

export class KeyTable {
  #bytes: Buffer = Buffer.allocUnsafeSlow(FIRST_BYTES);
  /** Where each key ends; it starts where the one before ends. */
  #ends = new Uint32Array(FIRST_KEYS);
  #hashes = new Uint32Array(FIRST_KEYS);
  /** 0 where nothing is. A power of two. */
  #slots = new Uint32Array(2 * FIRST_KEYS);
  #size = 0;

  /** Number of keys. */
  get size(): number {
    return this.#size;
  }

  /** Memory it takes. */
  get sizeBytes(): number {
    const { byteLength } = this.#ends;
    return this.#bytes.length + 2 * byteLength + this.#slots.byteLength;
  }

  /** Number of the key that the first bytes of `from` are; null when there is none. */
  find(from: Uint8Array, sizeBytes: number): number | null {
    const number = this.#slots[this.#slotOf(from, sizeBytes, hashOf(from, sizeBytes))]!;
    return number === 0 ? null : number - 1;
  }

  /**
   * Number of the key that the first bytes of `from` are, which is `size` before when it is new.
   */
  add(from: Uint8Array, sizeBytes: number): number {
    const hash = hashOf(from, sizeBytes);
    const slot = this.#slotOf(from, sizeBytes, hash);
    const known = this.#slots[slot]!;
    if (known !== 0) return known - 1;
    const number = this.#size++;
    this.#slots[slot] = number + 1;
    this.#append(number, hash, from, sizeBytes);
    if (3 * this.#size > 2 * this.#slots.length) this.#spread();
    return number;
  }

  /** A key in Latin-1. */
  textOf(number: number): string {
    return this.#bytes.toString("latin1", this.#startOf(number), this.#ends[number]);
  }

  /** A byte of a key; -1 behind its end. */
  byteAt(number: number, place: number): number {
    const at = this.#startOf(number) + place;
    return at < this.#ends[number]! ? this.#bytes[at]! : -1;
  }

  /** Negative when the first key is before the second one in the order of their bytes. */
  compare(left: number, right: number): number {
    const bytes = this.#bytes;
    const leftEnd = this.#ends[left]!;
    const rightEnd = this.#ends[right]!;
    let leftAt = this.#startOf(left);
    let rightAt = this.#startOf(right);
    while (leftAt < leftEnd && rightAt < rightEnd) {
      const difference = bytes[leftAt++]! - bytes[rightAt++]!;
      if (difference !== 0) return difference;
    }
    return leftEnd - leftAt - (rightEnd - rightAt);
  }

  copy(): KeyTable {
    const copy = new KeyTable();
    copy.#bytes = Buffer.allocUnsafeSlow(this.#bytes.length);
    this.#bytes.copy(copy.#bytes);
    copy.#ends = this.#ends.slice();
    copy.#hashes = this.#hashes.slice();
    copy.#slots = this.#slots.slice();
    copy.#size = this.#size;
    return copy;
  }

  #startOf(number: number): number {
    return number === 0 ? 0 : this.#ends[number - 1]!;
  }

  /** The slot of a key; the free one where it would be when it is not there. */
  #slotOf(from: Uint8Array, sizeBytes: number, hash: number): number {
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (let number = this.#slots[slot]!; number !== 0; number = this.#slots[slot]!) {
      if (this.#isKey(number - 1, hash, from, sizeBytes)) return slot;
      slot = slot + 1 & mask;
    }
    return slot;
  }

  #isKey(number: number, hash: number, from: Uint8Array, sizeBytes: number): boolean {
    return this.#hashes[number] === hash &&
      sameBytes(this.#bytes, this.#startOf(number), this.#ends[number]!, from, 0, sizeBytes);
  }

  #append(number: number, hash: number, from: Uint8Array, sizeBytes: number): void {
    if (number === this.#ends.length) {
      this.#ends = enlarged(this.#ends);
      this.#hashes = enlarged(this.#hashes);
    }
    const start = this.#startOf(number);
    if (start + sizeBytes > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(2 * this.#bytes.length + sizeBytes);
      this.#bytes.copy(larger, 0, 0, start);
      freeOwnMemory(this.#bytes);
      this.#bytes = larger;
    }
    this.#ends[number] = putBytes(this.#bytes, start, from, 0, sizeBytes);
    this.#hashes[number] = hash;
  }

  #spread(): void {
    const slotCount = 2 * this.#slots.length;
    freeOwnMemory(this.#slots);
    this.#slots = new Uint32Array(slotCount);
    const mask = this.#slots.length - 1;
    for (let number = 0; number < this.#size; number++) {
      let slot = this.#hashes[number]! & mask;
      while (this.#slots[slot] !== 0) slot = slot + 1 & mask;
      this.#slots[slot] = number + 1;
    }
  }
}

/** The same values, and room for as many more. The memory of `values` is gone then. */
function enlarged(values: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(2 * values.length);
  larger.set(values);
  freeOwnMemory(values);
  return larger;
}

/** FNV-1a with a start that nobody knows, its bits mixed once more at the end. */
function hashOf(bytes: Uint8Array, sizeBytes: number): number {
  let hash = fnv1a(bytes, 0, sizeBytes, SEED);
  hash = Math.imul(hash ^ hash >>> 15, 0x85ebca6b);
  return (hash ^ hash >>> 13) >>> 0;
}
