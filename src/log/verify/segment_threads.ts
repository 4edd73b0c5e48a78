/**
 * Verifies segments, which are independent of each other, ahead of the caller on several threads.
 * The main thread verifies none, because the size of its young generation cannot be limited.
 */
import { availableParallelism } from "node:os";
import { ThreadPool, ThreadUnavailableError } from "../../threads/thread_pool.ts";
import type { ExpectedSegment } from "../segment/segment_metadata.ts";
import type { CheckedSegment } from "./segment_verifier.ts";
import type { SegmentRequest } from "./segment_worker.ts";
import { sumOf } from "../../sum.ts";

/** Maximum number of threads. Each thread uses 32 to 64 MiB. */
const THREADS_MAX = 8;

/** Verifying a log smaller than this takes less time than starting threads. */
const SEGMENT_THREADS_BYTES_MIN = 8 * 1024 * 1024;

/** The segments in a log being verified on threads. */
export interface SegmentThreads {
  /** Result for each segment; null if a thread could not verify it. */
  checked: readonly Promise<CheckedSegment | null>[];
  /** Resolves once no file is being read. */
  close(): Promise<void>;
}

/**
 * Verifies segments on one thread per core.
 * @returns null if threads don't pay off: one segment, a small log, or a single core.
 */
export function startSegmentThreads(
  segments: readonly ExpectedSegment[],
  options: Omit<SegmentRequest, "expected">,
): SegmentThreads | null {
  const sizeBytes = sumOf(segments, ({ bytes }) => bytes);
  const count = Math.min(availableParallelism(), segments.length, THREADS_MAX);
  if (count < 2 || sizeBytes < SEGMENT_THREADS_BYTES_MIN) return null;
  const module = new URL("./segment_worker.ts", import.meta.url);
  const threads = new ThreadPool<SegmentRequest, CheckedSegment>(module, { threadsMax: count });
  const checks = segments.map(() => Promise.withResolvers<CheckedSegment | null>());
  let next = 0;
  let isUnavailable = false;
  const run = async () => {
    for (let place = next++; place < segments.length; place = next++) {
      const request = { ...options, expected: segments[place]! };
      // Don't retry if the runtime has no permission to load the worker module.
      const checked = isUnavailable ? null : threads.request(request).catch((error) => {
        isUnavailable ||= error instanceof ThreadUnavailableError;
        return null;
      });
      checks[place]!.resolve(await checked);
    }
  };
  for (let thread = 0; thread < count; thread++) void run();
  return { checked: checks.map(({ promise }) => promise), close: () => threads.close() };
}
