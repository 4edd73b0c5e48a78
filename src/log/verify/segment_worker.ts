/** The other threads of `segment_threads.ts`: each answers one message after the other. */
import { parentPort } from "node:worker_threads";
import { assert } from "../../assert.ts";
import { fileStorage } from "../storage/file_storage.ts";
import { checkSegment } from "./segment_checking.ts";
import type { SegmentThreadsOptions } from "./segment_threads.ts";
import type { SegmentEntry } from "./segment_verify.ts";

export interface SegmentQuestion extends SegmentThreadsOptions {
  entry: SegmentEntry;
}

/** See `SegmentChecking.check()`. */
export type SegmentAnswer = Uint32Array | null;

assert(parentPort !== null, "this module is the main one of a thread");
const port = parentPort;
port.on("message", async ({ folder, chain, entry }: SegmentQuestion) => {
  const answer: SegmentAnswer = await checkSegment(fileStorage(folder), entry, chain);
  port.postMessage(answer, answer === null ? [] : [answer.buffer as ArrayBuffer]);
});
