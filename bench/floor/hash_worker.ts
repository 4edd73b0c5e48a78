/** A worker of `../hash_floor.ts`: responds when it has hashed what was requested. */
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
