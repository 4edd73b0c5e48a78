/**
 * What the threads of `batch_threads.ts` are given to do: a body to be made a batch of, and a batch
 * to be given its ids and hashes. The memory moves to the thread with the question and back with
 * the answer, so while a thread has it nobody else can use it.
 */
import { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import { ApiError } from "../event/api_error.ts";
import { prepareBatch } from "../event/batch.ts";
import type { BufferPool } from "../event/buffer_pool.ts";
import type { EncodedEvents, FillValues } from "../event/encoded_events.ts";
import type { PreparedBatch } from "../event/types.ts";
import { fillInTurns } from "../log/wal/filled_batch.ts";
import { LostBatchError } from "../log/storage/errors.ts";
import type { BatchAnswer, BatchQuestion } from "./batch_worker.ts";

export interface BatchJob {
  /** What a thread is asked, and the memory that moves to it. */
  question(): { question: BatchQuestion; moved: ArrayBuffer[] };
  /** Takes what the thread says to that. */
  finish(answer: BatchAnswer): void;
  /** Does the work on this thread. */
  runHere(): void;
  /** The thread that was asked is gone, or could not be asked. */
  fail(failure: string): void;
}

/** Where memory for batches is found, and what batches take of it. */
export interface BatchMemory {
  readonly pool: BufferPool;
  /** Of the last batch, for each byte of its body. */
  textShares: readonly number[];
}

/** Prepares a body. */
export class PreparingJob implements BatchJob {
  readonly #body: Uint8Array;
  readonly #bodyBytes: number;
  readonly #memory: BatchMemory;
  readonly #outcome: PromiseWithResolvers<PreparedBatch> = Promise.withResolvers();

  constructor(body: Uint8Array, memory: BatchMemory) {
    this.#body = body;
    this.#bodyBytes = body.length;
    this.#memory = memory;
  }

  /** Rejects with an ApiError where the body is refused. */
  get outcome(): Promise<PreparedBatch> {
    return this.#outcome.promise;
  }

  question(): { question: BatchQuestion; moved: ArrayBuffer[] } {
    const body = this.#body;
    const bodyBytes = this.#bodyBytes;
    const { pool, textShares } = this.#memory;
    const memory = (pool.isAlone(body) ? body : new Uint8Array(body)).buffer as ArrayBuffer;
    const spare = textShares.map((share) => Math.ceil(share * bodyBytes))
      // Another batch may take many times more of its body: what is too large is of no use.
      .filter((sizeBytes) => pool.keeps(sizeBytes))
      .map((sizeBytes) => pool.take(sizeBytes));
    return {
      question: { kind: "prepare", memory, bodyBytes, spare },
      moved: [memory, ...spare],
    };
  }

  finish(answer: BatchAnswer): void {
    const { resolve, reject } = this.#outcome;
    if ("unused" in answer) { for (const piece of answer.unused) this.#memory.pool.give(piece); }
    switch (answer.kind) {
      case "batch":
        return resolve(this.#received(answer.batch));
      case "refusal":
        return reject(new ApiError(answer.code, answer.message, answer.context));
      case "failure":
        return reject(new Error(`a body could not be prepared: ${answer.message}`));
    }
  }

  runHere(): void {
    try {
      this.#outcome.resolve(prepareBatch(this.#body));
    } catch (error) {
      this.#outcome.reject(error);
    }
  }

  fail(failure: string): void {
    this.#outcome.reject(new Error(`no thread could prepare a body: ${failure}`));
  }

  #received(batch: PreparedBatch): PreparedBatch {
    const { lines, envelopes } = batch.events;
    this.#memory.textShares = [lines, envelopes].map(({ length }) => length / this.#bodyBytes);
    takeBack(batch.events, batch.events, this.#memory.pool);
    return batch;
  }
}

/** Gives the events of a batch what only the commit knows. */
export class FillingJob implements BatchJob {
  readonly #events: EncodedEvents;
  readonly #values: FillValues;
  readonly #pool: BufferPool;
  readonly #eventHashes: PromiseWithResolvers<string> = Promise.withResolvers();
  /** What of the memory that moves is in use. */
  #linesBytes = 0;
  #envelopesBytes = 0;

  constructor(events: EncodedEvents, values: FillValues, pool: BufferPool) {
    this.#events = events;
    this.#values = values;
    this.#pool = pool;
  }

  /** As of an `EventFiller`. */
  get outcome(): Promise<string> {
    return this.#eventHashes.promise;
  }

  /** Whether nothing else is in the memory of these events, so that it can move. */
  static canMove({ lines, envelopes, places }: EncodedEvents, pool: BufferPool): boolean {
    return [lines, envelopes, places].every(({ byteOffset }) => byteOffset === 0) &&
      pool.isAlone(lines) && pool.isAlone(envelopes) &&
      places.buffer.byteLength === places.byteLength;
  }

  question(): { question: BatchQuestion; moved: ArrayBuffer[] } {
    const { eventIds, observedAt } = this.#values;
    const { count, lines, envelopes, places } = this.#events;
    const memory = {
      lines: lines.buffer as ArrayBuffer,
      envelopes: envelopes.buffer as ArrayBuffer,
      places: places.buffer as ArrayBuffer,
    };
    this.#linesBytes = lines.length;
    this.#envelopesBytes = envelopes.length;
    return {
      question: { kind: "fill", ...memory, count, eventIds: eventIds.join(""), observedAt },
      moved: Object.values(memory),
    };
  }

  finish(answer: BatchAnswer): void {
    assert(answer.kind === "filled", "who is asked to fill a batch says that it is filled");
    const lines = new Uint8Array(answer.lines, 0, this.#linesBytes);
    const envelopes = new Uint8Array(answer.envelopes, 0, this.#envelopesBytes);
    const places = new Int32Array(answer.places);
    takeBack(this.#events, { lines, envelopes, places }, this.#pool);
    this.#eventHashes.resolve(answer.eventHashes);
  }

  runHere(): void {
    fillInTurns(this.#events, this.#values).then(
      this.#eventHashes.resolve,
      this.#eventHashes.reject,
    );
  }

  fail(failure: string): void {
    this.#eventHashes.reject(new LostBatchError(`no thread could fill it: ${failure}`));
  }
}

/** What has come from a thread has memory that nothing else is in. */
function takeBack(
  events: EncodedEvents,
  { lines, envelopes, places }: Record<"lines" | "envelopes", Uint8Array> & { places: Int32Array },
  pool: BufferPool,
): void {
  events.lines = asBuffer(lines);
  events.envelopes = asBuffer(envelopes);
  events.places = places;
  pool.adopt(lines);
  pool.adopt(envelopes);
}

function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length);
}
