/** Worker for `../hash_floor.ts`: hashes the requested work, then responds. */
import { parentPort } from "node:worker_threads";
import { hashEvents } from "./hashing.ts";

export interface HashTask {
  work: string;
  events: number;
}

const port = parentPort!;
port.on("message", ({ work, events }: HashTask) => {
  hashEvents(work, events);
  port.postMessage("done");
});
