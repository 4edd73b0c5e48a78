/** A thread that can prepare bodies, it says, and dies of the first one. */
import { parentPort } from "node:worker_threads";

parentPort!.on("message", () => {
  throw new Error("died of a body");
});
parentPort!.postMessage({ kind: "ready" });
