/**
 * Bounds the young heap of this thread: the memory for values that are mostly of no use soon. V8
 * lets it grow to 64 or 128 MiB and hardly ever gives it back; a service that keeps little has no
 * use for so much.
 *
 * For a heap that is there already V8 takes no limit, but it does take a factor to grow by: the
 * heap grows to the size that is wanted in one step, and from then on no more. A runtime that takes
 * no flags after its start is left as it is.
 */
import { getHeapSpaceStatistics, type HeapSpaceInfo, setFlagsFromString } from "node:v8";
import { YOUNG_HEAP_BYTES } from "../limits.ts";

const MIB = 1024 * 1024;
/** A young heap has two halves, one of which is empty. */
const HALF_MIB = YOUNG_HEAP_BYTES / 2 / MIB;
/** Values that outlive a collection make the heap grow. Small enough not to be put elsewhere. */
const VALUE_ENTRIES = 8 * 1024;
/** Together several times the size that a young heap has at first. */
const VALUES_MAX = 64;

/**
 * To be called once, early, by a command that runs for long. The young heaps of threads started
 * later would not grow either, so they begin with half of the size.
 */
export function boundYoungHeap(): void {
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
