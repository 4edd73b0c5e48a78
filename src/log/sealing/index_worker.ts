/** The worker thread of `index_thread.ts`. */
import { workerData } from "node:worker_threads";
import { answerRequests } from "../../threads/thread_pool.ts";
import type { MergePlan } from "../segment/sealed_history.ts";
import { fileStorage } from "../storage/file_storage.ts";
import { makeIndex } from "./index_maker.ts";
import { startThrottle } from "./throttle.ts";

const storage = fileStorage(workerData as string);

answerRequests<MergePlan, null>(async (plan) => {
  // Lookups are right without the index, so nothing is urgent.
  await makeIndex(storage, plan, startThrottle(0));
  return { response: null };
});
