/**
 * Limits V8's heap. By default V8 defers collection, and a service with 40 MiB of live data would
 * use 200 MiB.
 *
 * - The old generation of all threads is collected before it doubles.
 * - The young generation of this thread, and with it the external memory that its garbage retains,
 *   stays at 8 MiB instead of 64 or 128 MiB.
 *
 * Has no effect if the runtime accepts no flags after startup (docs/sizing.md).
 */
import { setInterval } from "node:timers";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";

const GROWTH_FLAG = "--heap-growing-percent=50";

/** V8 flags for a runtime that accepts none after startup. */
export const HEAP_FLAGS: readonly string[] = [
  GROWTH_FLAG,
  "--memory-saver-mode",
  "--max-semi-space-size=2",
];

/** With one arena for all threads, glibc's malloc retains 25 MiB less freed memory. */
export const HEAP_ENVIRONMENT: Readonly<Record<string, string>> = { MALLOC_ARENA_MAX: "1" };

/** A smaller young generation costs a third of the throughput of small batches. */
const YOUNG_HEAP_BYTES = 8 * 1024 * 1024;
/** Interval of the check, short enough for at most one doubling beyond that size. */
const YOUNG_HEAP_CHECK_MS = 100;

/** Limits the heap. Long-running commands call this once, early. */
export function boundHeap(): void {
  setFlagsFromString(GROWTH_FLAG);
  boundYoungHeap();
  setInterval(boundYoungHeap, YOUNG_HEAP_CHECK_MS).unref();
}

/**
 * V8 accepts no limit for an existing heap, only a growth factor. It shrinks the young generation
 * of an idle process, so a small one must be allowed to grow.
 */
function boundYoungHeap(): void {
  const isSmall = youngHeapBytes() < YOUNG_HEAP_BYTES;
  setFlagsFromString(`--semi-space-growth-factor=${isSmall ? 2 : 1}`);
}

/** Returns Infinity if the size is unknown: an older runtime throws. */
function youngHeapBytes(): number {
  try {
    const spaces = getHeapSpaceStatistics();
    return spaces.find(({ space_name: name }) => name === "new_space")?.space_size ?? Infinity;
  } catch {
    return Infinity;
  }
}
