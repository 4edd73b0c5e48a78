/** Operations in the writer queue, each of which reads the state and may commit one batch. */
import type { PreparedBatch } from "../event/types.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import type { Maybe } from "../maybe.ts";
import type { LogState } from "./log_state.ts";

/** A batch to commit, and the response once it is durable. */
export interface Commitment<Answer> {
  batch: PreparedBatch;
  answerFor: (entry: BatchEntry) => Answer;
}

/** The outcome of checking a mutation: a response without a commit, or a batch to commit. */
export type Decision<Answer> = { answer: Answer } | Commitment<Answer>;

/** Facts about the log. Of the values, only a batch id can contain spaces. */
export const FACT = {
  batch: (source: string, batchId: string): string => `batch ${source} ${batchId}`,
  /** The last event in a stream. */
  stream: (source: string, stream: string): string => `stream ${source} ${stream}`,
  /** The last event from a source. */
  source: (source: string): string => `source ${source}`,
  /** The retirement of a source, or the declaration of its predecessor. */
  lifecycle: (source: string): string => `lifecycle ${source}`,
};

/**
 * A mutation depends on an earlier one, whose outcome is unknown, if it reads a fact that the
 * earlier one changes.
 */
export interface Mutation<Answer> {
  readonly reads: readonly string[];
  readonly changes: readonly string[];
  /** The stream that a precondition reads. */
  readonly readsStream?: string | undefined;
  /** Lists the streams that change. A batch can have 10,000, which few other mutations read. */
  readonly changedStreams?: () => string[];
  /** Checks the mutation against the durable state. @throws {ApiError} if it is rejected. */
  decide(state: LogState): Maybe<Decision<Answer>>;
}

/** What mutations whose outcome is unknown change. */
export class UnsettledFacts {
  readonly #facts = new Set<string>();
  #unlisted: (() => string[])[] = [];

  add({ changes, changedStreams = () => [] }: Mutation<unknown>): void {
    for (const fact of changes) this.#facts.add(fact);
    this.#unlisted.push(changedStreams);
  }

  isReadBy({ reads, readsStream }: Mutation<unknown>): boolean {
    if (reads.some((fact) => this.#facts.has(fact))) return true;
    if (readsStream === undefined) return false;
    for (const list of this.#unlisted) for (const fact of list()) this.#facts.add(fact);
    this.#unlisted = [];
    return this.#facts.has(readsStream);
  }
}
