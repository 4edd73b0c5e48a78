/** Operations in the writer queue, each of which reads the state and may commit one batch. */
import type { StreamShare } from "../event/event_stamping.ts";
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

/**
 * Facts about the log, as strings. Sources and streams contain no spaces; a batch id, which may,
 * is last.
 */
export const FACT = {
  batch: (source: string, batchId: string): string => `batch ${source} ${batchId}`,
  /** The last event in a stream. */
  stream: (source: string, stream: string): string => `stream ${source} ${stream}`,
  /** The last event from a source. */
  source: (source: string): string => `source ${source}`,
  /** The retirement of a source, or the declaration of its predecessor. */
  lifecycle: (source: string): string => `lifecycle ${source}`,
};

/** The facts that mutations whose outcome is unknown change. */
export class UnsettledFacts {
  readonly #facts = new Set<string>();
  /** Streams not listed in `#facts` yet. Few mutations read streams; a batch may change 10,000. */
  readonly #unlisted: NonNullable<Mutation<unknown>["streams"]>[] = [];

  /** Adds what a mutation changes. */
  add({ changes, streams }: Mutation<unknown>): void {
    for (const fact of changes) this.#facts.add(fact);
    if (streams !== undefined) this.#unlisted.push(streams);
  }

  /** Whether the decision on a mutation depends on any of these facts. */
  isReadBy({ reads, readsStream }: Mutation<unknown>): boolean {
    if (reads.some((fact) => this.#facts.has(fact))) return true;
    if (readsStream === undefined) return false;
    for (const { source, shares } of this.#unlisted.splice(0)) {
      for (const { stream } of shares) this.#facts.add(FACT.stream(source, stream));
    }
    return this.#facts.has(readsStream);
  }
}

/**
 * A mutation depends on an earlier one, whose outcome is unknown, if it reads a fact that the
 * earlier one changes.
 */
export interface Mutation<Answer> {
  readonly reads: readonly string[];
  /** A stream's last event, which a precondition reads. */
  readonly readsStream?: string | undefined;
  readonly changes: readonly string[];
  /** Streams whose last event the mutation changes; absent if it changes none. */
  readonly streams?: { readonly source: string; readonly shares: readonly StreamShare[] };
  /** Checks the mutation against the durable state. @throws {ApiError} if it is rejected. */
  decide(state: LogState): Maybe<Decision<Answer>>;
}
