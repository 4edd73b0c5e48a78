/** A thread that says it runs, and dies of its first request. */
import { parentPort } from "node:worker_threads";

parentPort!.on("message", () => {
  throw new Error("died of a request");
});
parentPort!.postMessage({ ready: true });
