/**
 * Makes segments on another thread, so that appends and reads do not wait. The thread outlives its
 * work for a while: starting one takes a tenth of a second.
 */
import { ThreadPool } from "../../threads/thread_pool.ts";
import type { MadeSegment, SegmentMaker, SegmentTask } from "./segment_maker.ts";
import { Throttle } from "./throttle.ts";

/** The thread ends when it has been idle for this long. */
const SEAL_THREAD_IDLE_MS = 60_000;

/** What the thread is started with. */
export interface SealWorkerData {
  /** Path of the log folder. */
  logDir: string;
  /** Memory of its `Throttle`. */
  throttle: SharedArrayBuffer;
}

/** Makes segments of the log in a folder. A thread that dies is replaced for the next segment. */
export function sealThread(logDir: string): SegmentMaker {
  const throttle = new Throttle();
  const workerData: SealWorkerData = { logDir, throttle: throttle.memory };
  const threads = new ThreadPool<SegmentTask, MadeSegment>(
    new URL("./seal_worker.ts", import.meta.url),
    { threadsMax: 1, idleMs: SEAL_THREAD_IDLE_MS, workerData },
  );
  return {
    make: (task) => threads.request(task),
    setBacklog: (bytes) => throttle.backlogBytes = bytes,
    close: () => threads.close(),
  };
}
