/** The other thread of `seal_thread.ts`: makes one segment after the other. */
import { workerData } from "node:worker_threads";
import { answerRequests } from "../../threads/thread_pool.ts";
import { fileStorage } from "../storage/file_storage.ts";
import type { SealWorkerData } from "./seal_thread.ts";
import { inPlaceMaker, type MadeSegment, type SegmentTask } from "./segment_maker.ts";
import { Throttle } from "./throttle.ts";

const { logDir, throttle: memory } = workerData as SealWorkerData;
const throttle = new Throttle(memory);
const maker = inPlaceMaker(fileStorage(logDir), { throttle: () => throttle.pause() });

answerRequests<SegmentTask, MadeSegment>(async (task) => ({ response: await maker.make(task) }));
