/** A worker that starts but fails on its first request. */
import { parentPort } from "node:worker_threads";

parentPort!.on("message", () => {
  throw new Error("killed by a request");
});
parentPort!.postMessage({ ready: true });
