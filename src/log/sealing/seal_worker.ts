/** The worker thread of `seal_thread.ts`: makes one segment or index at a time. */
import { workerData } from "node:worker_threads";
import { answerRequests } from "../../threads/thread_pool.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { fileStorage } from "../storage/file_storage.ts";
import { makeIndex } from "./index_merging.ts";
import type { SealRequest } from "./seal_thread.ts";
import { type MadeSegment, makeSegment } from "./segment_maker.ts";
import { startThrottle } from "./throttle.ts";

const storage = fileStorage(workerData as string);

answerRequests<SealRequest, MadeSegment | string | null>(async (request) => {
  if ("task" in request) {
    const throttle = startThrottle(new Float64Array(request.task.backlog));
    return { response: await makeSegment(storage, request.task, { throttle }) };
  }
  try {
    await makeIndex(storage, request.plan, startThrottle([request.plan.backlog]));
    return { response: null };
  } catch (error) {
    if (!(error instanceof CorruptLogError)) throw error;
    // An error would lose its class on its way to the other thread.
    return { response: error.message };
  }
});
