/**
 * Limits the heap of V8, which otherwise defers collection: a service with 40 MiB of live data uses
 * 200 MiB.
 *
 * - The old generation of all threads is collected before it doubles, and compacted earlier: pages
 *   that are one fifth empty are evacuated, instead of two thirds.
 * - The young generation of this thread gets a fixed size instead of 64 or 128 MiB. V8 accepts no
 *   limit for an existing heap, but a growth factor: the heap grows once, then no further.
 *
 * Has no effect if the runtime takes no flags after its start (docs/operations.md, "Memory").
 */
import { getHeapSpaceStatistics, type HeapSpaceInfo, setFlagsFromString } from "node:v8";
import { v8Version } from "../runtime/engine.ts";

/** Maximum growth of an old generation between two full collections. */
const HEAP_GROWTH_PERCENT_MAX = 50;

/** Young generation of the main thread. The default is 128 MiB, plus referenced external memory. */
const YOUNG_HEAP_BYTES = 4 * 1024 * 1024;

const MIB = 1024 * 1024;
/** A young generation has two semi-spaces, one of which is empty. */
const HALF_MIB = YOUNG_HEAP_BYTES / 2 / MIB;
/** Size of a value that survives and makes the heap grow, below that of large objects. */
const VALUE_ENTRIES = 8 * 1024;
/** Several times the initial size of a young generation. */
const VALUES_MAX = 64;

const GROWTH_FLAG = `--heap-growing-percent=${HEAP_GROWTH_PERCENT_MAX}`;
const SAVER_FLAG = "--memory-saver-mode";
/** Older versions report the flag as unknown on standard error. */
const SAVER_V8_MIN = 13.6;
/** V8 flags for a runtime that takes none after its start. */
export const HEAP_FLAGS: readonly string[] = [
  GROWTH_FLAG,
  SAVER_FLAG,
  `--max-semi-space-size=${HALF_MIB}`,
];

/** With one arena for all threads, malloc of glibc retains 25 MiB less freed memory. */
export const HEAP_ENVIRONMENT: Readonly<Record<string, string>> = { MALLOC_ARENA_MAX: "1" };

/**
 * Limits the heap. Long-running commands call this once, early. Young generations of later threads
 * start at half the size, because they don't grow either.
 */
export function boundHeap(): void {
  setFlagsFromString(GROWTH_FLAG);
  if (v8Version() >= SAVER_V8_MIN) setFlagsFromString(SAVER_FLAG);
  setFlagsFromString(`--min-semi-space-size=${HALF_MIB / 2}`);
  setFlagsFromString(`--max-semi-space-size=${HALF_MIB / 2}`);
  setFlagsFromString(`--semi-space-growth-factor=${HALF_MIB}`);
  const values: number[][] = [];
  while (youngHeapBytes() < YOUNG_HEAP_BYTES && values.length < VALUES_MAX) {
    values.push(new Array<number>(VALUE_ENTRIES).fill(0));
  }
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** Returns Infinity if the size is unknown: an older runtime throws. */
function youngHeapBytes(): number {
  const isYoung = ({ space_name: name }: HeapSpaceInfo) => name === "new_space";
  try {
    return getHeapSpaceStatistics().find(isYoung)?.space_size ?? Infinity;
  } catch {
    return Infinity;
  }
}
