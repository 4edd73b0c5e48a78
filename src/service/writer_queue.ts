/**
 * The one queue in front of the log writer. Mutations are decided one at a time, in order of
 * arrival, by what is durable; those that arrive while a commit is being synced share the next one.
 * A mutation that depends on a batch of the commit being gathered waits for that commit's outcome.
 */
import { ApiError } from "../event/api_error.ts";
import { COMMIT_BATCHES_MAX, COMMIT_BYTES_SOFT_MAX } from "../limits.ts";
import type { Log } from "../log/log.ts";
import { StorageFullError, WriterPoisonedError } from "../log/log_error.ts";
import type { BatchEntry } from "../log/commit_frame.ts";
import type { LogState } from "./log_state.ts";
import { CommitGroup, type Mutation } from "./mutation.ts";
import type { StreamTable } from "./stream_table.ts";

interface Queued {
  mutation: Mutation<unknown>;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** One whose batch is in the commit under way. */
interface Committing {
  queued: Queued;
  answerFor: (entry: BatchEntry) => unknown;
}

export interface WriterQueueOptions {
  log: Log;
  state: LogState;
  streams: StreamTable;
  /** Receives sentences for the operator. */
  report: (line: string) => void;
  /** Told when the writer stops for good. */
  onStop: () => void;
}

export class WriterQueue {
  readonly #log: Log;
  readonly #state: LogState;
  readonly #streams: StreamTable;
  readonly #report: (line: string) => void;
  readonly #onStop: () => void;
  #queue: Queued[] = [];
  #running: Promise<void> | null = null;
  #stopped = false;
  #closed = false;

  constructor({ log, state, streams, report, onStop }: WriterQueueOptions) {
    this.#log = log;
    this.#state = state;
    this.#streams = streams;
    this.#report = report;
    this.#onStop = onStop;
  }

  /** Whether the outcome of a commit is unknown, so that no more are made. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Decides a mutation in its turn; its batch, if it has one, is durable when this returns. */
  submit<Answer>(mutation: Mutation<Answer>): Promise<Answer> {
    if (this.#closed) {
      return Promise.reject(new ApiError("overloaded", "the service is shutting down"));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ mutation, resolve: resolve as (answer: unknown) => void, reject });
      this.#running ??= this.#run();
    });
  }

  /** Takes no more mutations; returns when all submitted before have their outcome. */
  async close(): Promise<void> {
    this.#closed = true;
    while (this.#running !== null) await this.#running;
  }

  async #run(): Promise<void> {
    // Mutations that arrive in the same turn of the event loop share the first commit too.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      if (this.#stopped) this.#refuseAll();
      else await this.#commitNext();
    }
    this.#running = null;
  }

  async #commitNext(): Promise<void> {
    const group = new CommitGroup();
    const committing = await this.#gather(group);
    if (committing.length === 0) return;
    try {
      const committed = await this.#log.append(group.batches);
      committing.forEach(({ queued, answerFor }, place) =>
        queued.resolve(answerFor(committed[place]!.entry))
      );
    } catch (error) {
      const failure = this.#failure(error);
      for (const { queued } of committing) queued.reject(failure);
    }
  }

  /** Takes from the queue what one commit can hold, and answers what commits nothing. */
  async #gather(group: CommitGroup): Promise<Committing[]> {
    const committing: Committing[] = [];
    let taken = 0;
    let bytes = 0;
    for (const queued of this.#queue) {
      if (committing.length === COMMIT_BATCHES_MAX) break;
      if (committing.length > 0 && queued.mutation.dependsOn(group)) break;
      try {
        const decision = await queued.mutation.decide(this.#state, this.#streams);
        if ("answer" in decision) {
          queued.resolve(decision.answer);
        } else {
          bytes += decision.batch.events.lines.length;
          // The next commit takes it, and decides anew.
          if (committing.length > 0 && bytes > COMMIT_BYTES_SOFT_MAX) break;
          group.add(decision.batch);
          committing.push({ queued, answerFor: decision.answerFor });
        }
      } catch (error) {
        queued.reject(error);
      }
      taken += 1;
    }
    this.#queue.splice(0, taken);
    return committing;
  }

  #refuseAll(): void {
    for (const { reject } of this.#queue.splice(0)) reject(writerPoisoned());
  }

  /** What clients are told of a commit that failed. An unforeseen failure stops the writer too. */
  #failure(error: unknown): ApiError {
    if (error instanceof StorageFullError) {
      this.#report(`commit undone, nothing written: ${error.message}`);
      return new ApiError("storage_full", "the disk is full; nothing was written, retry later");
    }
    this.#stopped = true;
    const reason = error instanceof WriterPoisonedError ? error.message : (error as Error).stack;
    this.#report(`writer stopped, restart the service: ${reason}`);
    this.#onStop();
    return writerPoisoned();
  }
}

function writerPoisoned(): ApiError {
  return new ApiError(
    "writer_poisoned",
    "the outcome of a write is uncertain; restart the service, then retry the same batch",
  );
}
