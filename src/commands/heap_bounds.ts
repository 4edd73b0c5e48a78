/**
 * Bounds the heap of V8, which keeps what is of no use any more as long as memory seems to be
 * there: a service that holds 40 MiB takes 200.
 *
 * - The old heap, of all threads, is collected before it is twice what was in use the last time,
 *   and put together while it is: pages that are a fifth empty are cleared, not those that are two
 *   thirds.
 * - The young heap of this thread, for values that are mostly of no use soon, has one size. V8 lets
 *   it grow to 64 or 128 MiB. For a heap that is there already it takes no limit, but it does take
 *   a factor to grow by: the heap grows to the size that is wanted in one step, and then no more.
 *
 * A runtime that takes no flags after its start is left as it is (docs/operations.md, "Memory").
 */
import { getHeapSpaceStatistics, type HeapSpaceInfo, setFlagsFromString } from "node:v8";
import { v8Version } from "../runtime/engine.ts";

/** How much the old heap of a thread grows, at the most, from one full collection to the next. */
const HEAP_GROWTH_PERCENT_MAX = 50;

/**
 * The same of the first thread of a command. A runtime left to itself takes up to 128 MiB, and on
 * top of it what values outside of the heap hold until they are collected.
 */
const YOUNG_HEAP_BYTES = 4 * 1024 * 1024;

const MIB = 1024 * 1024;
/** A young heap has two halves, one of which is empty. */
const HALF_MIB = YOUNG_HEAP_BYTES / 2 / MIB;
/** Values that outlive a collection make the heap grow. Small enough not to be put elsewhere. */
const VALUE_ENTRIES = 8 * 1024;
/** Together several times the size that a young heap has at first. */
const VALUES_MAX = 64;

const GROWTH_FLAG = `--heap-growing-percent=${HEAP_GROWTH_PERCENT_MAX}`;
const SAVER_FLAG = "--memory-saver-mode";
/** An older V8 complains of that flag on standard error. */
const SAVER_V8_MIN = 13.6;
/** Flags of V8 that bound the heaps, for those who start a runtime that takes none later. */
export const HEAP_FLAGS: readonly string[] = [
  GROWTH_FLAG,
  SAVER_FLAG,
  `--max-semi-space-size=${HALF_MIB}`,
];

/**
 * And of the environment: with one arena for all threads, malloc of glibc keeps 25 MiB less of what
 * was given back to it.
 */
export const HEAP_ENVIRONMENT: Readonly<Record<string, string>> = { MALLOC_ARENA_MAX: "1" };

/**
 * To be called once, early, by a command that runs for long. The young heaps of threads started
 * later would not grow either, so they begin with half of the size.
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

/** Infinity where the runtime does not tell: an older one throws. */
function youngHeapBytes(): number {
  const isYoung = ({ space_name: name }: HeapSpaceInfo) => name === "new_space";
  try {
    return getHeapSpaceStatistics().find(isYoung)?.space_size ?? Infinity;
  } catch {
    return Infinity;
  }
}
