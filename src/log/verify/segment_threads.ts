/**
 * Threads that verify segments, which are independent of each other. The main thread verifies none,
 * because the size of its young generation cannot be limited.
 */
import { availableParallelism } from "node:os";
import { ThreadPool } from "../../threads/thread_pool.ts";
import type { ExpectedSegment } from "../segment/segment_metadata.ts";
import type { CheckedSegment } from "./segment_verifier.ts";
import type { SegmentRequest } from "./segment_worker.ts";
import { sumOf } from "../../sum.ts";

/** Maximum number of threads. Each thread uses 32 to 64 MiB. */
const THREADS_MAX = 8;

/** Verifying a log smaller than this takes less time than starting threads. */
const SEGMENT_THREADS_BYTES_MIN = 8 * 1024 * 1024;

/**
 * Returns one thread per core, or null if they don't pay off: for one segment, a small log, or a
 * single core.
 */
export function segmentThreads(
  segments: readonly ExpectedSegment[],
): ThreadPool<SegmentRequest, CheckedSegment> | null {
  const threadsMax = Math.min(availableParallelism(), segments.length, THREADS_MAX);
  const sizeBytes = sumOf(segments, ({ bytes }) => bytes);
  if (threadsMax < 2 || sizeBytes < SEGMENT_THREADS_BYTES_MIN) return null;
  return new ThreadPool(new URL("./segment_worker.ts", import.meta.url), { threadsMax });
}
