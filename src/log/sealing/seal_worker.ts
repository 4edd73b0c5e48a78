/** The worker thread of `seal_thread.ts`: builds one segment at a time. */
import { workerData } from "node:worker_threads";
import { answerRequests } from "../../threads/thread_pool.ts";
import { fileStorage } from "../storage/file_storage.ts";
import { type MadeSegment, makeSegment, type SegmentTask } from "./segment_maker.ts";
import { startThrottle } from "./throttle.ts";

const storage = fileStorage(workerData as string);

answerRequests<SegmentTask, MadeSegment>(async (task) => {
  const throttle = startThrottle(task.backlogBytes);
  return { response: await makeSegment(storage, task, { throttle }) };
});
