/** The other thread of `seal_thread.ts`: makes one segment after the other. */
import { parentPort, workerData } from "node:worker_threads";
import { assert } from "../../assert.ts";
import { fileStorage } from "../storage/file_storage.ts";
import { paceBy, SealBacklog } from "./pace.ts";
import { inPlaceMaker, type MadeSegment, type SegmentTask } from "./segment_maker.ts";

/** Which log the thread works on. */
export interface SealWorkerData {
  /** Path of the log folder. */
  logDir: string;
  /** Memory of the `SealBacklog` that it is paced by. */
  backlog: SharedArrayBuffer;
}

/** What becomes of a task. */
export type SealAnswer = { made: MadeSegment } | { failure: string };

assert(parentPort !== null, "this module is the main one of a thread");
const port = parentPort;
const { logDir, backlog } = workerData as SealWorkerData;
const startPace = () => paceBy(new SealBacklog(backlog));
const maker = inPlaceMaker(fileStorage(logDir), { startPace });

port.on("message", async (task: SegmentTask) => {
  port.postMessage(await answer(task));
});

async function answer(task: SegmentTask): Promise<SealAnswer> {
  try {
    return { made: await maker.make(task) };
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) };
  }
}
