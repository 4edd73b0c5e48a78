/**
 * Verifies segments ahead of their turn, several at the same time. Most checks of a segment need
 * nothing of the rest of the log. A thread tells only that a segment is right by itself; if not,
 * the caller verifies it in its turn and finds what is wrong. The main thread verifies none
 * meanwhile: its memory for short-lived values cannot be bounded.
 */
import { availableParallelism } from "node:os";
import { RequestThread, ThreadLostError } from "../../threads/request_thread.ts";
import type { ExpectedSegment } from "../segment/segment_check.ts";
import type { SegmentRequest, SegmentResponse } from "./segment_worker.ts";

/** Each thread takes 32 to 64 MiB. */
const THREADS_MAX = 8;

/** Requests to each thread at a time, so that it never waits for the next one. */
const REQUESTS_PER_THREAD = 2;

/** Smaller segments are verified before the threads would have started. */
export const SEGMENT_THREADS_BYTES_MIN: number = 8 * 1024 * 1024;

/** Verifies segments by themselves. */
export interface SegmentChecker {
  /** Segments that are worth being asked for before the first response. */
  readonly segmentsAhead: number;
  /** Whether a segment is right by itself; null also when that could not be found out. */
  check(expected: ExpectedSegment): Promise<SegmentResponse>;
  /** Resolves when nothing is read any more. */
  close(): Promise<void>;
}

/**
 * Threads for these segments, as many as there are processors. Where a runtime may not read the
 * module of a thread, all responses are null.
 * @returns null for one segment, for small ones, and where there is one processor.
 */
export function startSegmentThreads(
  segments: readonly ExpectedSegment[],
  options: Omit<SegmentRequest, "expected">,
): SegmentChecker | null {
  const sizeBytes = segments.reduce((sum, { bytes }) => sum + bytes, 0);
  const count = Math.min(availableParallelism(), segments.length, THREADS_MAX);
  if (count < 2 || sizeBytes < SEGMENT_THREADS_BYTES_MIN) return null;
  const module = new URL("./segment_worker.ts", import.meta.url);
  const threads = Array.from(
    { length: count },
    () => new RequestThread<SegmentRequest, SegmentResponse>(module),
  );
  let requests = 0;
  return {
    segmentsAhead: REQUESTS_PER_THREAD * count,
    async check(expected) {
      const thread = threads[requests++ % count]!;
      if (thread.isUnavailable) return null;
      try {
        return await thread.request({ ...options, expected });
      } catch (error) {
        if (!(error instanceof ThreadLostError)) throw error;
        return null;
      }
    },
    async close() {
      await Promise.all(threads.map((thread) => thread.close()));
    },
  };
}

/** A segment, and the response about it. */
export interface CheckedSegment<Expected> {
  expected: Expected;
  hashes: SegmentResponse;
}

/** The segments in their order, verified ahead of the one who takes them. */
export async function* checkAhead<Expected extends ExpectedSegment>(
  segments: readonly Expected[],
  checker: SegmentChecker | null,
): AsyncGenerator<CheckedSegment<Expected>, void> {
  const ahead: Promise<SegmentResponse>[] = [];
  for (const [place, expected] of segments.entries()) {
    const end = Math.min(segments.length, place + (checker?.segmentsAhead ?? 0));
    while (place + ahead.length < end) ahead.push(checker!.check(segments[place + ahead.length]!));
    yield { expected, hashes: await ahead.shift() ?? null };
  }
}
