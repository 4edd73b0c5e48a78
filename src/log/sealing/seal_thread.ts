/**
 * Builds segments on another thread, so that appends and reads do not wait. An idle thread stays
 * alive for some time, since starting one takes a tenth of a second.
 */
import { ThreadPool } from "../../threads/thread_pool.ts";
import type { SegmentMaker } from "./background_sealing.ts";
import type { MadeSegment, SegmentTask } from "./segment_maker.ts";

/** Idle time after which the thread exits. */
const SEAL_THREAD_IDLE_MS = 60_000;

/** Builds segments for the log in `logDir`. A thread that dies is replaced for the next segment. */
export function sealThread(logDir: string): SegmentMaker {
  const module = new URL("./seal_worker.ts", import.meta.url);
  const options = { threadsMax: 1, idleMs: SEAL_THREAD_IDLE_MS, workerData: logDir };
  const threads = new ThreadPool<SegmentTask, MadeSegment>(module, options);
  return { make: (task) => threads.request(task), close: () => threads.close() };
}
