/**
 * The one queue in front of the log writer. Mutations are decided one at a time, in order of
 * arrival, by what is durable; those that arrive while a commit is being synced share the next one.
 * A mutation that depends on a batch of the commit being gathered waits for that commit's outcome.
 *
 * A large batch steps out of the queue when its turn comes, is filled while others are committed,
 * and comes back to the end of the queue. There it is decided anew and has a commit of its own.
 */
import { ApiError } from "../event/api_error.ts";
import type { PreparedBatch } from "../event/types.ts";
import { COMMIT_BATCHES_MAX, COMMIT_BYTES_SOFT_MAX, COMMIT_SLICE_EVENTS } from "../limits.ts";
import type { FilledBatch } from "../log/wal/filled_batch.ts";
import type { Log } from "../log/log.ts";
import { LostBatchError, StorageFullError, WriterPoisonedError } from "../log/storage/errors.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import type { LogState } from "./log_state.ts";
import { CommitGroup, type Decision, type Mutation } from "./mutation.ts";

/** A batch of so many events is filled before its turn, while others are committed. */
const LARGE_BATCH_EVENTS_MIN = COMMIT_SLICE_EVENTS;

interface Queued {
  mutation: Mutation<unknown>;
  /** Its batch, if that is large and has been filled. */
  filled: FilledBatch | null;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** A decision to commit a batch. */
type ToCommit = Extract<Decision<unknown>, { batch: PreparedBatch }>;

/** One whose batch is in the commit under way. */
interface Committing {
  queued: Queued;
  answerFor: (entry: BatchEntry) => unknown;
}

/** What one commit is made of. */
interface Gathered {
  group: CommitGroup;
  committing: Committing[];
  /** Its only batch, if that is large. */
  filled: FilledBatch | null;
}

export interface WriterQueueOptions {
  log: Log;
  state: LogState;
  /** Receives sentences for the operator. */
  report: (line: string) => void;
  /** Told when the writer stops for good. */
  onStop: () => void;
  /** Batches of so many events are filled before their turn. */
  largeBatchEventsMin?: number;
}

export class WriterQueue {
  readonly #log: Log;
  readonly #state: LogState;
  readonly #report: (line: string) => void;
  readonly #onStop: () => void;
  readonly #largeBatchEventsMin: number;
  #queue: Queued[] = [];
  #running: Promise<void> | null = null;
  /** Large batches that wait to be filled. */
  readonly #large: { queued: Queued; batch: PreparedBatch }[] = [];
  /** The one that is being filled, or has been and waits in the queue. */
  #filling: Promise<void> | null = null;
  #stopped = false;
  #closed = false;

  constructor({ log, state, report, onStop, ...options }: WriterQueueOptions) {
    this.#largeBatchEventsMin = options.largeBatchEventsMin ?? LARGE_BATCH_EVENTS_MIN;
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
      this.#enqueue({
        mutation,
        filled: null,
        resolve: resolve as (answer: unknown) => void,
        reject,
      });
    });
  }

  #enqueue(queued: Queued): void {
    this.#queue.push(queued);
    this.#running ??= this.#run();
  }

  /** Takes no more mutations; returns when all submitted before have their outcome. */
  async close(): Promise<void> {
    this.#closed = true;
    while (this.#running !== null || this.#filling !== null) {
      await (this.#running ?? this.#filling);
    }
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
    const { group, committing, filled } = await this.#gather();
    if (committing.length === 0) return;
    try {
      const committed = filled === null
        ? await this.#log.append(group.batches)
        : await this.#log.appendFilled(filled);
      committing.forEach(({ queued, answerFor }, place) =>
        queued.resolve(answerFor(committed[place]!.entry))
      );
    } catch (error) {
      const failure = this.#failure(error);
      for (const { queued } of committing) queued.reject(failure);
    }
    if (filled !== null) this.#fillNext();
  }

  /** Takes from the queue what one commit can hold, and answers what commits nothing. */
  async #gather(): Promise<Gathered> {
    const group = new CommitGroup();
    const committing: Committing[] = [];
    let filled: FilledBatch | null = null;
    let taken = 0;
    let bytes = 0;
    for (const queued of this.#queue) {
      if (this.#stopped || filled !== null || committing.length === COMMIT_BATCHES_MAX) break;
      if (committing.length > 0 && mustWait(queued, group)) break;
      const decision = await this.#decide(queued);
      if (decision !== null && this.#isToBeFilled(queued, decision)) {
        this.#fillInTurn(queued, decision.batch);
      } else if (decision !== null) {
        bytes += decision.batch.events.lines.length;
        // The next commit takes it, and decides anew.
        if (committing.length > 0 && bytes > COMMIT_BYTES_SOFT_MAX) break;
        group.add(decision.batch);
        committing.push({ queued, answerFor: decision.answerFor });
        filled = queued.filled;
      }
      taken += 1;
    }
    this.#queue.splice(0, taken);
    return { group, committing, filled };
  }

  /** Null for one that commits nothing; it has its answer then. */
  async #decide(queued: Queued): Promise<ToCommit | null> {
    try {
      const decision = await queued.mutation.decide(this.#state);
      if ("batch" in decision) return decision;
      queued.resolve(decision.answer);
    } catch (error) {
      queued.reject(error);
    }
    if (queued.filled !== null) {
      this.#log.dropFilled();
      this.#fillNext();
    }
    return null;
  }

  #isToBeFilled({ filled }: Queued, { batch }: ToCommit): boolean {
    return filled === null && batch.events.count >= this.#largeBatchEventsMin;
  }

  #fillInTurn(queued: Queued, batch: PreparedBatch): void {
    this.#large.push({ queued, batch });
    if (this.#filling === null) this.#fillNext();
  }

  /** To be called when there is no filled batch any more. */
  #fillNext(): void {
    const next = this.#large.shift();
    this.#filling = next === undefined ? null : this.#fill(next.queued, next.batch);
  }

  /** Never rejects. */
  async #fill(queued: Queued, batch: PreparedBatch): Promise<void> {
    try {
      queued.filled = await this.#log.fill(batch);
    } catch (error) {
      if (error instanceof LostBatchError) return this.#giveUp(queued, error);
      this.#failure(error);
    }
    if (this.#stopped) this.#filling = null;
    // To be refused, where the writer has stopped.
    this.#enqueue(queued);
  }

  /** The batch that was being filled is gone. */
  #giveUp({ reject }: Queued, error: LostBatchError): void {
    this.#log.dropFilled();
    reject(error);
    this.#fillNext();
  }

  #refuseAll(): void {
    const refused = this.#queue.splice(0);
    for (const { reject } of refused) reject(writerPoisoned());
    for (const { queued } of this.#large.splice(0)) queued.reject(writerPoisoned());
    if (refused.some(({ filled }) => filled !== null)) this.#filling = null;
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

/** Whether something is for a later commit than that of `group`, which has a batch already. */
function mustWait({ mutation, filled }: Queued, group: CommitGroup): boolean {
  return filled !== null || mutation.dependsOn(group);
}

function writerPoisoned(): ApiError {
  return new ApiError(
    "writer_poisoned",
    "the outcome of a write is uncertain; restart the service, then retry the same batch",
  );
}
