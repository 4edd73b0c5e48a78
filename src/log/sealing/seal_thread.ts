/**
 * Makes segments and indexes on threads, so that appends and reads do not wait. An idle thread
 * stays alive for some time, since starting one takes a tenth of a second.
 */
import { CorruptLogError } from "../storage/errors.ts";
import { ThreadPool } from "../../threads/thread_pool.ts";
import type { MergePlan } from "../segment/sealed_history.ts";
import type { Maker } from "./sealer.ts";
import type { MadeSegment, SegmentTask } from "./segment_maker.ts";

const SEAL_THREAD_IDLE_MS = 60_000;

export type SealRequest = { task: SegmentTask } | { plan: MergePlan };

/**
 * Returns a maker for the log in `logDir`. Large merges have their own thread, beside sealing.
 * Sealing has a second one for the next file while it is behind.
 */
export function sealThreads(logDir: string): Required<Maker> {
  const module = new URL("./seal_worker.ts", import.meta.url);
  const options = { idleMs: SEAL_THREAD_IDLE_MS, workerData: logDir };
  const segments = new ThreadPool<SealRequest, MadeSegment>(module, { threadsMax: 2, ...options });
  const indexes = new ThreadPool<SealRequest, string | null>(module, { threadsMax: 1, ...options });
  return {
    makeSegment: (task) => segments.request({ task }),
    async makeIndex(plan) {
      const damage = await indexes.request({ plan });
      if (damage !== null) throw new CorruptLogError(damage);
    },
    async close() {
      await segments.close();
      await indexes.close();
    },
  };
}
