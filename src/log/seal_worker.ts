/** The other thread of `seal_thread.ts`: makes one segment after the other. */
import { parentPort, workerData } from "node:worker_threads";
import { assert } from "../assert.ts";
import { PACED_BYTES_MAX } from "../limits.ts";
import { fileStorage } from "./file_storage.ts";
import { FULL_SPEED, halfSpeed, type Pace } from "./pace.ts";
import { inPlaceMaker, type MadeSegment, type SegmentTask } from "./segment_maker.ts";

/** Which log the thread works on. */
export interface SealWorkerData {
  /** Path of the log folder. */
  logDir: string;
}

/** What becomes of a task. */
export type SealAnswer = { made: MadeSegment } | { failure: string };

assert(parentPort !== null, "this module is the main one of a thread");
const port = parentPort;
const { logDir } = workerData as SealWorkerData;
const maker = inPlaceMaker(fileStorage(logDir), { paceOf });

port.on("message", async (task: SegmentTask) => {
  port.postMessage(await answer(task));
});

/** Others come first, unless the next file grows faster than this one can be sealed at that. */
function paceOf({ startBytes, endBytes }: SegmentTask): Pace {
  return endBytes - startBytes > PACED_BYTES_MAX ? FULL_SPEED : halfSpeed();
}

async function answer(task: SegmentTask): Promise<SealAnswer> {
  try {
    return { made: await maker.make(task) };
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) };
  }
}
