/**
 * The one queue in front of the log writer. Batches are decided one at a time, in order of arrival; those
 * that arrive while a commit is being synced share the next one. An answer that depends on a batch of the
 * commit under way is given only when that commit's outcome is known.
 */
import { ApiError } from "../event/api_error.ts";
import type { PreparedBatch, Receipt } from "../event/types.ts";
import { COMMIT_BATCHES_MAX, COMMIT_BYTES_SOFT_MAX } from "../limits.ts";
import type { BatchEntry } from "../log/commit_frame.ts";
import type { Log } from "../log/log.ts";
import { StorageFullError, WriterPoisonedError } from "../log/log_error.ts";
import { type BatchIndex, batchKey } from "./batch_index.ts";

interface QueuedBatch {
  batch: PreparedBatch;
  resolve: (receipt: Receipt) => void;
  reject: (error: unknown) => void;
}

/** What an event adds to a commit besides its payload, about: only to tell when a commit is full. */
const EVENT_OVERHEAD_BYTES = 600;

export class WriterQueue {
  readonly #log: Log;
  readonly #index: BatchIndex;
  readonly #report: (line: string) => void;
  #queue: QueuedBatch[] = [];
  #running: Promise<void> | null = null;
  /** Why nothing more is taken; null while batches are. */
  #stopped: Error | null = null;

  constructor(log: Log, index: BatchIndex, report: (line: string) => void) {
    this.#log = log;
    this.#index = index;
    this.#report = report;
  }

  /** Commits a batch, or answers from the one committed before. @throws {ApiError} */
  submit(batch: PreparedBatch): Promise<Receipt> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ batch, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Returns when all batches submitted so far have their outcome. */
  async drain(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  async #run(): Promise<void> {
    // Batches that arrive in the same turn of the event loop share the first commit too.
    await Promise.resolve();
    while (this.#queue.length > 0) await this.#commitGroup(this.#takeGroup());
    this.#running = null;
  }

  #takeGroup(): QueuedBatch[] {
    let count = 0;
    let bytes = 0;
    while (
      count < this.#queue.length && count < COMMIT_BATCHES_MAX && bytes < COMMIT_BYTES_SOFT_MAX
    ) {
      bytes += storedBytes(this.#queue[count]!.batch);
      count += 1;
    }
    return this.#queue.splice(0, count);
  }

  async #commitGroup(group: QueuedBatch[]): Promise<void> {
    if (this.#stopped !== null) {
      for (const { reject } of group) reject(writerPoisoned());
      return;
    }
    const decided = new DecidedGroup(this.#index);
    for (const queued of group) decided.decide(queued);
    if (decided.batches.length === 0) return;
    try {
      const entries = await this.#log.append(decided.batches);
      for (const entry of entries) this.#index.add(entry);
      decided.settle(entries);
    } catch (error) {
      decided.fail(this.#failure(error));
    }
  }

  /** What clients are told of a commit that failed. An unforeseen failure stops the writer too. */
  #failure(error: unknown): ApiError {
    if (error instanceof StorageFullError) {
      this.#report(`commit undone, nothing written: ${error.message}`);
      return new ApiError("storage_full", "the disk is full; nothing was written, retry later");
    }
    if (this.#stopped === null) {
      this.#stopped = error instanceof Error ? error : new Error(String(error));
      const what = error instanceof WriterPoisonedError ? error.message : this.#stopped.stack;
      this.#report(`writer stopped, restart the service: ${what}`);
    }
    return writerPoisoned();
  }
}

function writerPoisoned(): ApiError {
  return new ApiError(
    "writer_poisoned",
    "the outcome of a write is uncertain; restart the service, then retry the same batch",
  );
}

/** The batches of one commit, and the answers that wait for its outcome. */
class DecidedGroup {
  readonly batches: PreparedBatch[] = [];
  readonly #index: BatchIndex;
  /** Place in `batches` of the identities of this commit. */
  readonly #placeByKey = new Map<string, number>();
  readonly #waiting: { queued: QueuedBatch; place: number; answer: Answer }[] = [];

  constructor(index: BatchIndex) {
    this.#index = index;
  }

  decide(queued: QueuedBatch): void {
    const { batch } = queued;
    const known = this.#index.get(batch.source, batch.batchId);
    if (known !== undefined) {
      give(queued, repeatAnswer(batch, known.batch_digest), known);
      return;
    }
    const key = batchKey(batch.source, batch.batchId);
    const place = this.#placeByKey.get(key);
    if (place !== undefined) {
      const answer = repeatAnswer(batch, this.batches[place]!.batchDigest);
      this.#waiting.push({ queued, place, answer });
      return;
    }
    this.#placeByKey.set(key, this.batches.length);
    this.#waiting.push({ queued, place: this.batches.length, answer: "committed" });
    this.batches.push(batch);
  }

  /** Gives the answers once the commit is durable. */
  settle(entries: readonly BatchEntry[]): void {
    for (const { queued, place, answer } of this.#waiting) give(queued, answer, entries[place]!);
  }

  fail(error: ApiError): void {
    for (const { queued } of this.#waiting) queued.reject(error);
  }
}

type Answer = "committed" | "duplicate" | "conflict";

/** The answer to a batch whose identity is taken by one with the digest `committedDigest`. */
function repeatAnswer(batch: PreparedBatch, committedDigest: string): Answer {
  return batch.batchDigest === committedDigest ? "duplicate" : "conflict";
}

function give({ batch, resolve, reject }: QueuedBatch, answer: Answer, entry: BatchEntry): void {
  if (answer === "conflict") {
    const { source, batchId } = batch;
    reject(
      new ApiError(
        "batch_id_conflict",
        "this batch_id was committed with other events; use a new batch_id for new events",
        { source, batch_id: batchId },
      ),
    );
    return;
  }
  resolve({
    status: answer,
    batch_digest: entry.batch_digest,
    events: entry.events,
    first_event_id: entry.first_event_id,
    last_event_id: entry.last_event_id,
  });
}

function storedBytes(batch: PreparedBatch): number {
  let bytes = 0;
  for (const event of batch.events) bytes += event.payload.length + EVENT_OVERHEAD_BYTES;
  return bytes;
}
