/**
 * The entries of an index (docs/format.md). An entry has 64 bits: the hash of a key, then 16 bits
 * that tell where the key is: the ordinal of a segment in its run, or of a row group in a segment.
 * Lists of them are sorted by V8's own sort, which takes 50 ns for an entry.
 */
import { assert } from "../../assert.ts";
import { sumOf } from "../../sum.ts";
import type { KeyHash } from "./key_hash.ts";

export const ENTRY_BYTES = 8;
export const ORDINALS_MAX: number = 2 ** 16;
/** Entries are stored with their low word first, as all supported processors do. */
assert(new Uint8Array(Uint16Array.of(1).buffer)[0] === 1, "the processor must be little-endian");

/** The upper 32 bits of the entries of a hash. */
export function highWord(hash: KeyHash): number {
  return Math.floor(hash / ORDINALS_MAX);
}

/** Collects entries in any order. */
export class EntryList {
  /** Of each entry, the low word and the high word. */
  readonly #words: number[] = [];

  add(hash: KeyHash, ordinal: number): void {
    assert(ordinal < ORDINALS_MAX, "an ordinal must have at most 16 bits");
    this.#words.push(hash % ORDINALS_MAX * ORDINALS_MAX + ordinal, highWord(hash));
  }

  /** Returns the distinct entries in order. */
  sorted(): BigUint64Array {
    return sortDistinct(new BigUint64Array(new Uint32Array(this.#words).buffer));
  }
}

/** Sorts entries in place and moves the distinct ones to the start; returns those. */
export function sortDistinct(entries: BigUint64Array): BigUint64Array {
  entries.sort();
  const words = new Uint32Array(entries.buffer, entries.byteOffset, 2 * entries.length);
  let end = 0;
  for (let at = 0; at < words.length; at += 2) {
    const isRepeated = end > 0 && words[at] === words[end - 2] && words[at + 1] === words[end - 1];
    if (isRepeated) continue;
    words[end++] = words[at]!;
    words[end++] = words[at + 1]!;
  }
  return entries.subarray(0, end / 2);
}

/** Joins lists of entries. */
export function joined(parts: readonly BigUint64Array[]): BigUint64Array {
  const all = new BigUint64Array(sumOf(parts, ({ length }) => length));
  let end = 0;
  for (const part of parts) {
    all.set(part, end);
    end += part.length;
  }
  return all;
}
