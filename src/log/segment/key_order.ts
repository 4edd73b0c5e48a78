/**
 * Sorts short byte strings by numbers that stand for them, without a text for each: three-way radix
 * quicksort (Bentley and Sedgewick, "Fast Algorithms for Sorting and Searching Strings", 1997).
 */
import type { KeyTable } from "./key_table.ts";

/** A range as short as this is sorted by whole comparisons. */
const SHORT_RANGE = 8;

/** Sorts numbers of keys by the bytes of those. */
export function sortKeys(keys: KeyTable, numbers: Uint32Array): void {
  sortRange(keys, numbers, 0, numbers.length, 0);
}

/** Sorts [low, high), whose keys all have the same first `depth` bytes. */
function sortRange(
  keys: KeyTable,
  numbers: Uint32Array,
  low: number,
  high: number,
  depth: number,
): void {
  while (high - low > SHORT_RANGE) {
    const byte = keys.byteAt(numbers[(low + high) >>> 1]!, depth);
    const { less, greater } = partition(keys, numbers, low, high, depth, byte);
    // Those that end here are all the same key.
    const same = byte < 0 ? 0 : greater - less;
    // What is called is never more than half, so that the stack stays short.
    if (same >= less - low && same >= high - greater) {
      sortRange(keys, numbers, low, less, depth);
      sortRange(keys, numbers, greater, high, depth);
      low = less;
      high = greater;
      depth += 1;
    } else {
      if (same > 0) sortRange(keys, numbers, less, greater, depth + 1);
      if (less - low < high - greater) {
        sortRange(keys, numbers, low, less, depth);
        low = greater;
      } else {
        sortRange(keys, numbers, greater, high, depth);
        high = less;
      }
    }
  }
  insertInOrder(keys, numbers, low, high);
}

/** Moves keys by their byte at `depth`: [low, less) before, [greater, high) after `byte`. */
function partition(
  keys: KeyTable,
  numbers: Uint32Array,
  low: number,
  high: number,
  depth: number,
  byte: number,
): { less: number; greater: number } {
  let less = low;
  let greater = high;
  for (let place = low; place < greater;) {
    const number = numbers[place]!;
    const difference = keys.byteAt(number, depth) - byte;
    if (difference < 0) {
      numbers[place++] = numbers[less]!;
      numbers[less++] = number;
    } else if (difference > 0) {
      greater -= 1;
      numbers[place] = numbers[greater]!;
      numbers[greater] = number;
    } else {
      place += 1;
    }
  }
  return { less, greater };
}

function insertInOrder(keys: KeyTable, numbers: Uint32Array, low: number, high: number): void {
  for (let next = low + 1; next < high; next++) {
    const number = numbers[next]!;
    let place = next;
    for (; place > low && keys.compare(numbers[place - 1]!, number) > 0; place--) {
      numbers[place] = numbers[place - 1]!;
    }
    numbers[place] = number;
  }
}
