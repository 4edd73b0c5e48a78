/**
 * Bounds the heap of V8, which defers collection as long as memory seems to be free: a service that
 * holds 40 MiB takes 200.
 *
 * - The old generation, of all threads, is collected before it doubles, and compacted more
 *   eagerly: pages that are a fifth empty are evacuated, instead of pages two thirds empty.
 * - The young generation of this thread has a fixed size; V8 lets it grow to 64 or 128 MiB. V8
 *   takes no limit for an existing heap, but it takes a growth factor: the heap grows to the wanted
 *   size in one step, and then no further.
 *
 * A runtime that takes no flags after its start is unaffected (docs/operations.md, "Memory").
 */
import { getHeapSpaceStatistics, type HeapSpaceInfo, setFlagsFromString } from "node:v8";
import { v8Version } from "../runtime/engine.ts";

/** Maximum growth of the old generation of a thread between two full collections. */
const HEAP_GROWTH_PERCENT_MAX = 50;

/**
 * Young generation of the main thread of a command. The default is up to 128 MiB, plus external
 * memory that its uncollected values hold.
 */
const YOUNG_HEAP_BYTES = 4 * 1024 * 1024;

const MIB = 1024 * 1024;
/** A young generation has two semi-spaces, one of which is empty. */
const HALF_MIB = YOUNG_HEAP_BYTES / 2 / MIB;
/** Survivors make the heap grow. Small enough to stay out of the large object space. */
const VALUE_ENTRIES = 8 * 1024;
/** Together several times the initial size of a young generation. */
const VALUES_MAX = 64;

const GROWTH_FLAG = `--heap-growing-percent=${HEAP_GROWTH_PERCENT_MAX}`;
const SAVER_FLAG = "--memory-saver-mode";
/** An older V8 reports that flag as unknown on standard error. */
const SAVER_V8_MIN = 13.6;
/** V8 flags that bound the heaps, for a runtime that takes none after its start. */
export const HEAP_FLAGS: readonly string[] = [
  GROWTH_FLAG,
  SAVER_FLAG,
  `--max-semi-space-size=${HALF_MIB}`,
];

/**
 * And the environment: with one arena for all threads, malloc of glibc retains 25 MiB less of the
 * freed memory.
 */
export const HEAP_ENVIRONMENT: Readonly<Record<string, string>> = { MALLOC_ARENA_MAX: "1" };

/**
 * Must be called once, early, by a long-running command. Young generations of later threads would
 * not grow either, so they begin at half the size.
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

/** Infinity when the runtime does not say: an older one throws. */
function youngHeapBytes(): number {
  const isYoung = ({ space_name: name }: HeapSpaceInfo) => name === "new_space";
  try {
    return getHeapSpaceStatistics().find(isYoung)?.space_size ?? Infinity;
  } catch {
    return Infinity;
  }
}
