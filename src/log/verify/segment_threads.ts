/**
 * Verifies segments ahead on several threads. Most checks of a segment need nothing of the rest of
 * the log. A thread reports only whether a segment is right by itself; if not, the caller verifies
 * it in log order and finds what is wrong. The main thread verifies none meanwhile, because its
 * young generation can't be limited.
 */
import { availableParallelism } from "node:os";
import { ThreadLostError, ThreadPool } from "../../threads/thread_pool.ts";
import type { ExpectedSegment } from "../segment/segment_metadata.ts";
import type { SegmentRequest, SegmentResponse } from "./segment_worker.ts";

/** Each thread takes 32 to 64 MiB. */
const THREADS_MAX = 8;

/** Requests queued for each thread, so that it never waits for the next one. */
const REQUESTS_PER_THREAD = 2;

/** Smaller logs are verified before the threads would have started. */
export const SEGMENT_THREADS_BYTES_MIN: number = 8 * 1024 * 1024;

/** Verifies segments by themselves. */
export interface SegmentChecker {
  /** Number of segments to request ahead. */
  readonly segmentsAhead: number;
  /** Checks a segment by itself; null when it is wrong or could not be checked. */
  check(expected: ExpectedSegment): Promise<SegmentResponse>;
  /** Resolves when no file is being read. */
  close(): Promise<void>;
}

/**
 * Starts threads for these segments, as many as there are processors. Where the runtime may not
 * read the module of a thread, all responses are null.
 * @returns null for one segment, for small ones, and on one processor.
 */
export function startSegmentThreads(
  segments: readonly ExpectedSegment[],
  options: Omit<SegmentRequest, "expected">,
): SegmentChecker | null {
  const sizeBytes = segments.reduce((sum, { bytes }) => sum + bytes, 0);
  const count = Math.min(availableParallelism(), segments.length, THREADS_MAX);
  if (count < 2 || sizeBytes < SEGMENT_THREADS_BYTES_MIN) return null;
  const module = new URL("./segment_worker.ts", import.meta.url);
  const threads = new ThreadPool<SegmentRequest, SegmentResponse>(module, { threadsMax: count });
  return {
    segmentsAhead: REQUESTS_PER_THREAD * count,
    async check(expected) {
      if (threads.isUnavailable) return null;
      try {
        return await threads.request({ ...options, expected });
      } catch (error) {
        if (!(error instanceof ThreadLostError)) throw error;
        return null;
      }
    },
    close: () => threads.close(),
  };
}

/** The segments in log order with their responses, requested ahead of the caller. */
export async function* checkAhead<Expected extends ExpectedSegment>(
  segments: readonly Expected[],
  checker: SegmentChecker | null,
): AsyncGenerator<[Expected, SegmentResponse], void> {
  const ahead: Promise<SegmentResponse>[] = [];
  for (const [place, expected] of segments.entries()) {
    const end = Math.min(segments.length, place + (checker?.segmentsAhead ?? 0));
    while (place + ahead.length < end) ahead.push(checker!.check(segments[place + ahead.length]!));
    yield [expected, await ahead.shift() ?? null];
  }
}
