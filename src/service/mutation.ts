/** A unit of the writer queue: it reads the state and may commit one batch. */
import type { PreparedBatch } from "../event/types.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import type { LogState } from "./log_state.ts";

/** A batch to commit, and the answer once it is durable. */
export interface Commitment<Answer> {
  batch: PreparedBatch;
  answerFor: (entry: BatchEntry) => Answer;
}

/** Without a batch nothing is committed. */
export type Decision<Answer> = { answer: Answer } | Commitment<Answer>;

export interface Mutation<Answer> {
  /** Whether a batch of `group`, not durable yet, could change the decision. */
  dependsOn(group: CommitGroup): boolean;
  /** Decides by what is durable. @throws {ApiError} the refusal */
  decide(state: LogState): Promise<Decision<Answer>>;
}

/** The batches of the next commit: decided, not written. */
export class CommitGroup {
  readonly batches: PreparedBatch[] = [];
  /** Batch ids by source. */
  readonly #batchIds = new Map<string, Set<string>>();

  add(batch: PreparedBatch): void {
    this.batches.push(batch);
    const { source, batchId } = batch;
    this.#batchIds.set(source, (this.#batchIds.get(source) ?? new Set()).add(batchId));
  }

  hasBatch(source: string, batchId: string): boolean {
    return this.#batchIds.get(source)?.has(batchId) === true;
  }

  hasSource(source: string): boolean {
    return this.#batchIds.has(source);
  }
}
