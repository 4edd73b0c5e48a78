/**
 * The other thread of `batch_threads.ts`: prepares bodies and fills batches, one after the other.
 * All memory that comes with a question goes back with the answer.
 */
import { parentPort } from "node:worker_threads";
import { assert } from "../assert.ts";
import { ApiError, type ErrorCode } from "../event/api_error.ts";
import { prepareBatch } from "../event/batch.ts";
import { batchEncoder } from "../event/batch_encoder.ts";
import { NO_ID } from "../event/encoded_events.ts";
import type { PreparedBatch } from "../event/types.ts";
import { fillAll } from "../log/wal/filled_batch.ts";

/** What this thread is asked. */
export type BatchQuestion = BodyQuestion | FillQuestion;

export interface BodyQuestion {
  kind: "prepare";
  /** The body is in its first bytes. */
  memory: ArrayBuffer;
  bodyBytes: number;
  /** To make the batch in. */
  spare: ArrayBuffer[];
}

/**
 * The memory of a batch, as memory alone: a runtime takes a second to receive views of it, whose
 * members it looks through.
 */
interface BatchMemory {
  lines: ArrayBuffer;
  envelopes: ArrayBuffer;
  places: ArrayBuffer;
}

export interface FillQuestion extends BatchMemory {
  kind: "fill";
  /** Events of the batch. */
  count: number;
  /** One after the other. */
  eventIds: string;
  observedAt: string;
}

/** What this thread says: once that it is there, then the outcome of each question. */
export type BatchAnswer =
  | { kind: "ready" }
  | BatchMemory & { kind: "filled"; eventHashes: string }
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

port.on("message", (question: BatchQuestion) => {
  if (question.kind === "fill") fill(question);
  else answerBody(question);
});
answer({ kind: "ready" });

function answerBody({ memory, bodyBytes, spare }: BodyQuestion): void {
  for (const piece of spare) pool.give(piece);
  const outcome = prepare(new Uint8Array(memory, 0, bodyBytes));
  const unused = [memory, ...pool.drain()];
  const moved = outcome.kind === "batch" ? memoryOf(outcome.batch) : [];
  answer({ ...outcome, unused }, [...moved, ...unused]);
}

function fill({ count, eventIds, observedAt, ...memory }: FillQuestion): void {
  const { lines, envelopes, places } = memory;
  const events = {
    count,
    lines: new Uint8Array(lines),
    envelopes: new Uint8Array(envelopes),
    places: new Int32Array(places),
  };
  const ids = Array.from(
    { length: count },
    (_, place) => eventIds.slice(place * NO_ID.length, (place + 1) * NO_ID.length),
  );
  const eventHashes = fillAll(events, { eventIds: ids, observedAt });
  answer({ kind: "filled", lines, envelopes, places, eventHashes }, [lines, envelopes, places]);
}

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
