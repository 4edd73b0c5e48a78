/**
 * The log writer's queue. Mutations are checked one at a time, in order of arrival, against the
 * durable state; those that arrive while a commit is being synced share the next commit (group
 * commit). A mutation that depends on a batch in the next commit waits for that commit.
 */
import { ApiError } from "../event/api_error.ts";
import { COMMIT_BATCHES_MAX, COMMIT_BYTES_SOFT_MAX } from "../limits.ts";
import type { Log } from "../log/log.ts";
import type { Report } from "../log/recovery.ts";
import { StorageFullError, WriterPoisonedError } from "../log/storage/errors.ts";
import { LogState } from "./log_state.ts";
import type { Commitment, Mutation } from "./mutation.ts";

/** Minimum interval between reports of a full disk. */
const FULL_REPORT_INTERVAL_MS = 10_000;

interface Queued {
  mutation: Mutation<unknown>;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

export class WriterQueue {
  readonly #log: Log;
  readonly #state: LogState;
  readonly #report: Report;
  readonly #onChange: () => void;
  readonly #queue: Queued[] = [];
  #running: Promise<void> | null = null;
  /** Mutations refused since the last report of a full disk. */
  #refused = 0;
  #fullReportDueMs = 0;
  #stopped = false;
  #closed = false;

  /** @param onChange called when a commit is durable, and when the writer stops. */
  constructor(log: Log, report: Report, onChange: () => void) {
    this.#log = log;
    this.#state = new LogState(log);
    this.#report = report;
    this.#onChange = onChange;
  }

  /** Whether the writer has stopped because the outcome of a commit is unknown. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Queues a mutation. Its batch, if any, is durable when this resolves. */
  submit<Answer>(mutation: Mutation<Answer>): Promise<Answer> {
    if (this.#closed) {
      return Promise.reject(new ApiError("overloaded", "the service is shutting down"));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ mutation, resolve: resolve as (answer: unknown) => void, reject });
      this.#running ??= this.#run();
    });
  }

  /** Rejects further mutations; resolves when all queued ones have completed. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    // Mutations that arrive in the same turn of the event loop also share the first commit.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      if (!this.#stopped) await this.#commitNext();
      else for (const { reject } of this.#queue.splice(0)) reject(writerPoisoned());
    }
    this.#running = null;
  }

  /** Commits as much of the queue as fits in one commit. */
  async #commitNext(): Promise<void> {
    const group = new Map<string, Set<string>>();
    const committing: { queued: Queued; commitment: Commitment<unknown> }[] = [];
    let taken = 0;
    let bytes = 0;
    for (const queued of this.#queue) {
      if (committing.length === COMMIT_BATCHES_MAX) break;
      if (committing.length > 0 && queued.mutation.dependsOn(group)) break;
      const commitment = await this.#decide(queued);
      if (commitment !== null) {
        bytes += commitment.batch.events.lines.length;
        // This mutation stays in the queue and is checked again for the next commit.
        if (committing.length > 0 && bytes > COMMIT_BYTES_SOFT_MAX) break;
        const { source, batchId } = commitment.batch;
        group.set(source, (group.get(source) ?? new Set()).add(batchId));
        committing.push({ queued, commitment });
      }
      taken += 1;
    }
    this.#queue.splice(0, taken);
    if (committing.length === 0) return;
    try {
      const batches = committing.map(({ commitment }) => commitment.batch);
      const committed = await this.#log.append(batches);
      this.#onChange();
      for (const [index, { queued, commitment }] of committing.entries()) {
        queued.resolve(commitment.answerFor(committed[index]!));
      }
    } catch (error) {
      const failure = this.#failure(error, committing.length);
      for (const { queued } of committing) queued.reject(failure);
    }
  }

  /** Checks a mutation. Responds to it and returns null if it commits nothing. */
  async #decide({ mutation, resolve, reject }: Queued): Promise<Commitment<unknown> | null> {
    try {
      const decision = await mutation.decide(this.#state);
      if ("batch" in decision) return decision;
      resolve(decision.answer);
    } catch (error) {
      reject(error);
    }
    return null;
  }

  /** Returns the API error for a failed commit. Only a full disk leaves the writer running. */
  #failure(error: unknown, mutations: number): ApiError {
    if (error instanceof StorageFullError) {
      this.#reportFull(mutations, error.message);
      return new ApiError("storage_full", "the disk is full, so nothing was written; retry later");
    }
    this.#stopped = true;
    const reason = error instanceof WriterPoisonedError ? error.message : (error as Error).stack;
    this.#report(`writer stopped; restart the service: ${reason}`);
    this.#onChange();
    return writerPoisoned();
  }

  /** Counts refused requests and reports them once per interval, since there can be thousands. */
  #reportFull(mutations: number, reason: string): void {
    this.#refused += mutations;
    const nowMs = performance.now();
    if (nowMs < this.#fullReportDueMs) return;
    this.#report(`commit undone, nothing written: ${reason}; requests refused: ${this.#refused}`);
    this.#refused = 0;
    this.#fullReportDueMs = nowMs + FULL_REPORT_INTERVAL_MS;
  }
}

function writerPoisoned(): ApiError {
  return new ApiError(
    "writer_poisoned",
    "the outcome of a write is uncertain; restart the service, then retry the same batch",
  );
}
