/**
 * The log writer's queue. Mutations are checked in order of arrival against the durable state,
 * which no commit changes meanwhile; those that arrive while a commit is being synced share the
 * next commit (group commit). A mutation that depends on an earlier one whose outcome is not known
 * yet stays in the queue, and those behind it that don't depend on either go ahead.
 *
 * Invariants:
 * - No mutation in a group reads what another one in it changes, so each decision holds whether or
 *   not the others are committed. A group is committed as a whole or not at all.
 * - A mutation never overtakes one on which it depends, including one that waits.
 * - What waits is checked first for the next commit, against the real outcome: a durable batch, or
 *   its absence if the disk was full. If the outcome is unknown, it is rejected like the group. So
 *   a mutation waits at most for those that were ahead of it when it arrived.
 */
import { ApiError } from "../event/api_error.ts";
import { COMMIT_BATCHES_MAX, COMMIT_BYTES_SOFT_MAX } from "../limits.ts";
import type { Log } from "../log/log.ts";
import type { Report } from "../log/recovery.ts";
import { StorageFullError, WriterPoisonedError } from "../log/storage/errors.ts";
import { describeError } from "../log/storage/system_error.ts";
import type { Maybe } from "../maybe.ts";
import type { ChangeSignal } from "./change_signal.ts";
import { LogState } from "./log_state.ts";
import type { Commitment, Decision, Mutation } from "./mutation.ts";

/** Number of mutations whose checks may read files concurrently. */
const CHECKED_AT_ONCE = 64;
/** Minimum interval between reports of a full disk. */
const FULL_REPORT_INTERVAL_MS = 10_000;

interface Queued {
  mutation: Mutation<unknown>;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
}

/** A mutation and what to commit for it; null if it was answered. */
type Check = [Queued, Maybe<Commitment<unknown> | null>];

export class WriterQueue {
  readonly #log: Log;
  readonly #state: LogState;
  readonly #report: Report;
  readonly #changes: Pick<ChangeSignal, "commit" | "fire">;
  #queue: Queued[] = [];
  #running: Promise<void> | null = null;
  /** Mutations refused since the last report of a full disk. */
  #refused = 0;
  #fullReportDueMs = 0;
  #stopped = false;
  #closed = false;

  /** @param changes told about each durable commit, and fired when the writer stops. */
  constructor(log: Log, report: Report, changes: Pick<ChangeSignal, "commit" | "fire">) {
    this.#log = log;
    this.#state = new LogState(log.files);
    this.#report = report;
    this.#changes = changes;
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
      const fault = await this.#fault();
      if (fault === null) await this.#commitNext();
      else for (const { reject } of this.#queue.splice(0)) reject(fault);
    }
    this.#running = null;
  }

  /** Returns why nothing can be acknowledged; null if it can. */
  async #fault(): Promise<ApiError | null> {
    if (this.#stopped) return writerPoisoned();
    const { storage } = this.#log;
    if (!storage.isDue) return null;
    const message = "the log was moved, replaced or removed; retry later";
    const lost = () => new ApiError("writer_poisoned", message);
    return await storage.assertOwned().then(() => null, lost);
  }

  /** Commits as much of the queue as fits in one commit. */
  async #commitNext(): Promise<void> {
    const done = new Set<Queued>();
    const committing: { queued: Queued; commitment: Commitment<unknown> }[] = [];
    let bytes = 0;
    for (const checks of this.#checkNext()) {
      for (const [queued, decision] of checks) {
        const commitment = decision instanceof Promise ? await decision : decision;
        if (commitment !== null) {
          bytes += sizeOf(commitment);
          // This mutation stays in the queue and is checked again for the next commit.
          if (committing.length > 0 && bytes > COMMIT_BYTES_SOFT_MAX) continue;
          committing.push({ queued, commitment });
        }
        done.add(queued);
      }
      if (bytes > COMMIT_BYTES_SOFT_MAX) break;
    }
    this.#queue = this.#queue.filter((queued) => !done.has(queued));
    if (committing.length === 0) return;
    try {
      const batches = committing.map(({ commitment }) => commitment.batch);
      const committed = await this.#log.append(batches);
      committing.forEach(({ queued, commitment }, index) => {
        queued.resolve(commitment.answerFor(committed[index]!));
      });
      this.#changes.commit(batches, committed.at(-1)!.last_event_id);
    } catch (error) {
      const failure = this.#failure(error, committing.length);
      for (const { queued } of committing) queued.reject(failure);
    }
  }

  /**
   * Checks mutations that may share the next commit. Yields when CHECKED_AT_ONCE are reading, and
   * at the end. The caller awaits what it gets before it goes on.
   */
  *#checkNext(): Generator<Check[], void> {
    /** Facts that the mutations in this commit, and those that wait for it, may change. */
    const unsettled = new Set<string>();
    /** The last mutation. Its facts are not listed yet: one alone in its commit lists none. */
    let unlisted: Queued | null = null;
    let checks: Check[] = [];
    let [checked, reading, bytes] = [0, 0, 0];
    for (const queued of this.#queue) {
      if (checked === COMMIT_BATCHES_MAX || bytes > COMMIT_BYTES_SOFT_MAX) break;
      for (const fact of unlisted?.mutation.changes() ?? []) unsettled.add(fact);
      unlisted = queued;
      if (queued.mutation.reads.some((fact) => unsettled.has(fact))) continue;
      const decision = this.#decide(queued);
      if (decision instanceof Promise) reading += 1;
      else if (decision === null) unlisted = null;
      else bytes += sizeOf(decision);
      checks.push([queued, decision]);
      checked += 1;
      if (reading < CHECKED_AT_ONCE) continue;
      yield checks;
      checks = [];
      reading = 0;
    }
    yield checks;
  }

  /** Checks a mutation. Responds to it and returns null if it commits nothing. */
  #decide({ mutation, resolve, reject }: Queued): Maybe<Commitment<unknown> | null> {
    const settle = (decision: Decision<unknown>) => {
      if ("batch" in decision) return decision;
      resolve(decision.answer);
      return null;
    };
    const fail = (error: unknown) => {
      reject(error);
      return null;
    };
    try {
      const decision = mutation.decide(this.#state);
      return decision instanceof Promise ? decision.then(settle, fail) : settle(decision);
    } catch (error) {
      return fail(error);
    }
  }

  /** Returns the API error for a failed commit. Only a full disk leaves the writer running. */
  #failure(error: unknown, mutations: number): ApiError {
    if (error instanceof StorageFullError) {
      // Refused requests are counted and reported once per interval, since there can be thousands.
      this.#refused += mutations;
      const nowMs = performance.now();
      if (nowMs >= this.#fullReportDueMs) {
        const undone = `commit undone, nothing written: ${describeError(error)}`;
        this.#report(`${undone}; requests refused: ${this.#refused}`);
        this.#refused = 0;
        this.#fullReportDueMs = nowMs + FULL_REPORT_INTERVAL_MS;
      }
      return new ApiError("storage_full", "the disk is full, so nothing was written; retry later");
    }
    this.#stopped = true;
    const isKnown = error instanceof WriterPoisonedError;
    const reason = isKnown ? describeError(error) : (error as Error).stack;
    this.#report(`writer stopped; restart the service: ${reason}`);
    this.#changes.fire();
    return writerPoisoned();
  }
}

function sizeOf({ batch }: Commitment<unknown>): number {
  return batch.events.lines.length;
}

function writerPoisoned(): ApiError {
  return new ApiError(
    "writer_poisoned",
    "the outcome of a write is uncertain; restart the service, then retry the same batch",
  );
}
