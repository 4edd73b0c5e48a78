/** A unit of the writer queue: it reads the state and may commit one batch. */
import type { PreparedBatch } from "../event/types.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import { IdentityMap } from "./identity_map.ts";
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
  readonly #identities = new IdentityMap<PreparedBatch>();

  add(batch: PreparedBatch): void {
    this.batches.push(batch);
    this.#identities.set(batch.source, batch.batchId, batch);
  }

  hasBatch(source: string, batchId: string): boolean {
    return this.#identities.get(source, batchId) !== undefined;
  }

  hasSource(source: string): boolean {
    return this.#identities.hasSource(source);
  }
}
