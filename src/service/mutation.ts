/** An operation in the writer queue, which reads the state and may commit one batch. */
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

/** Sources and `batchKey()`s of the next commit, whose batches are decided but not written. */
export type CommitGroup = ReadonlySet<string>;

/** The identity of a batch as one string. Differs from every source: no source contains a space. */
export function batchKey(source: string, batchId: string): string {
  return `${source} ${batchId}`;
}

export interface Mutation<Answer> {
  /** Whether a batch of `group`, which is not durable yet, could change the decision. */
  dependsOn(group: CommitGroup): boolean;
  /** Decides against the durable state. @throws {ApiError} the operation is refused. */
  decide(state: LogState): Promise<Decision<Answer>>;
}
