/**
 * The other thread of `batch_threads.ts`: prepares one body after the other. All memory that comes
 * with a body goes back with its outcome.
 */
import { parentPort } from "node:worker_threads";
import { assert } from "../assert.ts";
import { ApiError, type ErrorCode } from "../event/api_error.ts";
import { prepareBatch } from "../event/batch.ts";
import { batchEncoder } from "../event/batch_encoder.ts";
import type { PreparedBatch } from "../event/types.ts";

/** What this thread is asked. */
export interface BatchQuestion {
  /** The body is in its first bytes. */
  memory: ArrayBuffer;
  bodyBytes: number;
  /** To make the batch in. */
  spare: ArrayBuffer[];
}

/** What this thread says: once that it is there, then the outcome of each body. */
export type BatchAnswer =
  | { kind: "ready" }
  | BatchOutcome & {
    /** What came with the body and is free again. */
    unused: ArrayBuffer[];
  };

export type BatchOutcome =
  | { kind: "batch"; batch: PreparedBatch }
  | { kind: "refusal"; code: ErrorCode; message: string; context: Record<string, unknown> }
  | { kind: "failure"; message: string };

assert(parentPort !== null, "this module is the main one of a thread");
const port = parentPort;
const { memory: pool } = batchEncoder;
const answer = (message: BatchAnswer, moved: ArrayBuffer[] = []) =>
  port.postMessage(message, moved);

port.on("message", ({ memory, bodyBytes, spare }: BatchQuestion) => {
  for (const piece of spare) pool.give(piece);
  const outcome = prepare(new Uint8Array(memory, 0, bodyBytes));
  const unused = [memory, ...pool.drain()];
  const moved = outcome.kind === "batch" ? memoryOf(outcome.batch) : [];
  answer({ ...outcome, unused }, [...moved, ...unused]);
});
answer({ kind: "ready" });

function prepare(body: Uint8Array): BatchOutcome {
  try {
    return { kind: "batch", batch: prepareBatch(body) };
  } catch (error) {
    if (error instanceof ApiError) {
      const { code, message, context } = error;
      return { kind: "refusal", code, message, context };
    }
    return { kind: "failure", message: error instanceof Error ? error.message : String(error) };
  }
}

/** What can be moved instead of copied: memory that nothing else is in. */
function memoryOf({ events: { lines, envelopes, places } }: PreparedBatch): ArrayBuffer[] {
  return [lines, envelopes].filter((bytes) => pool.isAlone(bytes))
    .map(({ buffer }) => buffer as ArrayBuffer)
    .concat(places.buffer as ArrayBuffer);
}
