/** Operations in the writer queue, each of which reads the state and may commit one batch. */
import type { PreparedBatch } from "../event/types.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import type { LogState } from "./log_state.ts";

/** A batch to commit, and the response once it is durable. */
export interface Commitment<Answer> {
  batch: PreparedBatch;
  answerFor: (entry: BatchEntry) => Answer;
}

/** The outcome of checking a mutation: a response without a commit, or a batch to commit. */
export type Decision<Answer> = { answer: Answer } | Commitment<Answer>;

/** Ids of the batches in the next commit, by source. They are checked but not yet written. */
export type CommitGroup = ReadonlyMap<string, ReadonlySet<string>>;

export interface Mutation<Answer> {
  /** Whether a batch in `group`, none of which is durable yet, could change the decision. */
  dependsOn(group: CommitGroup): boolean;
  /** Checks the mutation against the durable state. @throws {ApiError} if it is rejected. */
  decide(state: LogState): Promise<Decision<Answer>>;
}
