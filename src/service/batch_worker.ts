/** The other thread of `batch_threads.ts`: prepares one body after the other. */
import type { Buffer } from "node:buffer";
import { parentPort } from "node:worker_threads";
import { assert } from "../assert.ts";
import { ApiError, type ErrorCode } from "../event/api_error.ts";
import { prepareBatch } from "../event/batch.ts";
import type { PreparedBatch } from "../event/types.ts";

/** What this thread says: once that it is there, then the outcome of each body. */
export type BatchAnswer =
  | { kind: "ready" }
  | { kind: "batch"; batch: PreparedBatch }
  | { kind: "refusal"; code: ErrorCode; message: string; context: Record<string, unknown> }
  | { kind: "failure"; message: string };

assert(parentPort !== null, "this module is the main one of a thread");
const port = parentPort;
const answer = (message: BatchAnswer, moved: ArrayBuffer[] = []) =>
  port.postMessage(message, moved);

port.on("message", (body: ArrayBuffer) => {
  try {
    const batch = prepareBatch(new Uint8Array(body));
    answer({ kind: "batch", batch }, memoryOf(batch));
  } catch (error) {
    if (error instanceof ApiError) {
      const { code, message, context } = error;
      answer({ kind: "refusal", code, message, context });
    } else {
      answer({ kind: "failure", message: error instanceof Error ? error.message : String(error) });
    }
  }
});
answer({ kind: "ready" });

/** What can be moved instead of copied: memory that nothing else is in. */
function memoryOf({ events: { lines, envelopes, places } }: PreparedBatch): ArrayBuffer[] {
  const own = ({ buffer, length }: Buffer) => buffer.byteLength === length;
  return [lines, envelopes].filter(own).map(({ buffer }) => buffer as ArrayBuffer)
    .concat(places.buffer as ArrayBuffer);
}
