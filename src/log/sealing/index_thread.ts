/** Makes indexes on another thread, apart from sealing, which a large merge must not delay. */
import { ThreadPool } from "../../threads/thread_pool.ts";
import type { MergePlan } from "../segment/sealed_history.ts";
import type { IndexMaker } from "./index_maker.ts";

/** Idle time after which the thread exits. */
const INDEX_THREAD_IDLE_MS = 10_000;

export function indexThread(logDir: string): IndexMaker {
  const module = new URL("./index_worker.ts", import.meta.url);
  const options = { threadsMax: 1, idleMs: INDEX_THREAD_IDLE_MS, workerData: logDir };
  const threads = new ThreadPool<MergePlan, null>(module, options);
  return {
    make: async (plan) => void await threads.request(plan),
    close: () => threads.close(),
  };
}
