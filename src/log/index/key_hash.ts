/**
 * Hashes of the keys that an index finds: 48 bits of the SHA-256 of an unambiguous text. Nobody can
 * construct keys whose hashes are equal in numbers, so a lookup stays cheap with any keys. Among
 * 10^9 keys, one lookup in 300,000 meets another key's hash and costs a read.
 */
import { hash } from "node:crypto";
import type { EventFilter } from "../line/stored_line.ts";

/** An integer below 2^48. */
export type KeyHash = number;

export const KEY_HASHES: KeyHash = 2 ** 48;
const HASH_DIGITS = 12;

/** No source contains a space. */
export function batchHash(source: string, batchId: string): KeyHash {
  return keyHash(`batch ${source} ${batchId}`);
}

/** @param key see `streamKey()` and `sourceKey()`. */
export function streamHash(key: string): KeyHash {
  return keyHash(`stream ${key}`);
}

/** The columns by which readers filter. */
export type FilteredColumn = "record_key" | "stream" | "source" | "kind";

/** Hashes a value of a column, in any source. */
export function valueHash(column: FilteredColumn, value: string): KeyHash {
  return keyHash(`${column}=${value}`);
}

/** Returns the hashes of the values that events must have to pass a filter. */
export function filterHashes({ recordKey, stream, source, kind }: EventFilter): KeyHash[] {
  const values = { record_key: recordKey, stream, source, kind };
  return Object.entries(values).flatMap(([column, value]) =>
    value === undefined ? [] : [valueHash(column as FilteredColumn, value)]
  );
}

/** This conversion is the fastest on both runtimes. */
function keyHash(text: string): KeyHash {
  return Number("0x" + hash("sha256", text, "hex").slice(0, HASH_DIGITS));
}
