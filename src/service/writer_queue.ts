/**
 * The one queue in front of the log writer. Mutations are decided one at a time, in order of
 * arrival, by what is durable; those that arrive while a commit is being synced share the next one
 * (group commit). A mutation that depends on a batch of the next commit waits for its outcome.
 */
import { ApiError } from "../event/api_error.ts";
import { COMMIT_BATCHES_MAX, COMMIT_BYTES_SOFT_MAX } from "../limits.ts";
import type { Log } from "../log/log.ts";
import { StorageFullError, WriterPoisonedError } from "../log/storage/errors.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import type { LogState } from "./log_state.ts";
import { CommitGroup, type Decision, type Mutation } from "./mutation.ts";

interface Queued {
  mutation: Mutation<unknown>;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** A decision to commit a batch. */
type ToCommit = Exclude<Decision<unknown>, { answer: unknown }>;

/** One whose batch is in the next commit. */
interface Committing {
  queued: Queued;
  answerFor: (entry: BatchEntry) => unknown;
}

export interface WriterQueueOptions {
  log: Log;
  state: LogState;
  /** Receives sentences for the operator. */
  report: (line: string) => void;
  /** Told when the writer stops for good. */
  onStop: () => void;
}

export class WriterQueue {
  readonly #log: Log;
  readonly #state: LogState;
  readonly #report: (line: string) => void;
  readonly #onStop: () => void;
  #queue: Queued[] = [];
  #running: Promise<void> | null = null;
  #stopped = false;
  #closed = false;

  constructor({ log, state, report, onStop }: WriterQueueOptions) {
    this.#log = log;
    this.#state = state;
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
    await this.#running;
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
    const { group, committing } = await this.#takeNext();
    if (committing.length === 0) return;
    try {
      const committed = await this.#log.append(group.batches);
      committing.forEach(({ queued, answerFor }, index) =>
        queued.resolve(answerFor(committed[index]!.entry))
      );
    } catch (error) {
      const failure = this.#failure(error);
      for (const { queued } of committing) queued.reject(failure);
    }
  }

  /** Takes from the queue what one commit can hold, and answers what commits nothing. */
  async #takeNext(): Promise<{ group: CommitGroup; committing: Committing[] }> {
    const group = new CommitGroup();
    const committing: Committing[] = [];
    let taken = 0;
    let bytes = 0;
    for (const queued of this.#queue) {
      if (committing.length === COMMIT_BATCHES_MAX) break;
      if (committing.length > 0 && queued.mutation.dependsOn(group)) break;
      const decision = await this.#decide(queued);
      if (decision !== null) {
        bytes += decision.batch.events.lines.length;
        // The next commit takes it, and decides it then.
        if (committing.length > 0 && bytes > COMMIT_BYTES_SOFT_MAX) break;
        group.add(decision.batch);
        committing.push({ queued, answerFor: decision.answerFor });
      }
      taken += 1;
    }
    this.#queue.splice(0, taken);
    return { group, committing };
  }

  /** Null for one that commits nothing; it has its answer then. */
  async #decide({ mutation, resolve, reject }: Queued): Promise<ToCommit | null> {
    try {
      const decision = await mutation.decide(this.#state);
      if ("batch" in decision) return decision;
      resolve(decision.answer);
    } catch (error) {
      reject(error);
    }
    return null;
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
