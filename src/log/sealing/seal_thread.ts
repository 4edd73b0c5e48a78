/**
 * Makes segments and indexes on threads, so that appends and reads do not wait. An idle thread
 * stays alive for some time, since starting one takes a tenth of a second.
 */
import { CorruptLogError } from "../storage/errors.ts";
import { ThreadPool } from "../../threads/thread_pool.ts";
import type { MergePlan } from "../segment/sealed_history.ts";
import type { IndexMaker, SegmentMaker } from "./sealer.ts";
import type { MadeSegment, SegmentTask } from "./segment_maker.ts";

/** Idle time after which the thread exits. */
const SEAL_THREAD_IDLE_MS = 60_000;

/** A request to a thread. */
export type SealRequest = { task: SegmentTask } | { plan: MergePlan };

/** What is damaged in the inputs of an index; null if it was made. */
export type IndexDamage = string | null;

/** Builds segments for the log in `logDir`. A thread that dies is replaced for the next segment. */
export function sealThread(logDir: string): SegmentMaker {
  const threads = startThread<MadeSegment>(logDir);
  return { make: (task) => threads.request({ task }), close: () => threads.close() };
}

/** Makes indexes on a thread of its own, since a large merge must not delay sealing. */
export function indexThread(logDir: string): IndexMaker {
  const threads = startThread<IndexDamage>(logDir);
  return {
    async make(plan) {
      const damage = await threads.request({ plan });
      if (damage !== null) throw new CorruptLogError(damage);
    },
    close: () => threads.close(),
  };
}

function startThread<Made>(logDir: string): ThreadPool<SealRequest, Made> {
  const module = new URL("./seal_worker.ts", import.meta.url);
  const options = { threadsMax: 1, idleMs: SEAL_THREAD_IDLE_MS, workerData: logDir };
  return new ThreadPool(module, options);
}
