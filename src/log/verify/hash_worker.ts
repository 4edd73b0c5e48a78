/** The other thread of `hash_thread.ts`: answers each message in its order. */
import { Buffer } from "node:buffer";
import { parentPort } from "node:worker_threads";
import { assert } from "../../assert.ts";
import { areHashesRight } from "./line_hashing.ts";

/** Lines to be checked: the first `bytes` of `memory`. */
export interface HashQuestion {
  memory: ArrayBuffer;
  bytes: number;
}

export interface HashAnswer extends HashQuestion {
  areHashed: boolean;
}

assert(parentPort !== null, "this module is the main one of a thread");
const port = parentPort;
port.on("message", ({ memory, bytes }: HashQuestion) => {
  const areHashed = areHashesRight(Buffer.from(memory, 0, bytes));
  port.postMessage({ memory, bytes, areHashed } satisfies HashAnswer, [memory]);
});
