/** Replays a log on a worker thread, so that the client that is measured does not wait for it. */
import { workerData } from "node:worker_threads";
import { runLoad } from "./load.ts";
import { replayWorkload } from "./workloads.ts";

const { events, ...options } = workerData;
await runLoad({ ...options, workloads: [replayWorkload(events)] });
