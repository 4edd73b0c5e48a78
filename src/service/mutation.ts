/**
 * The operations in the writer queue, each of which reads the state and may commit one batch: an
 * append, or a retirement, which appends a system event.
 */
import { ApiError } from "../event/api_error.ts";
import { prepareSystemBatch } from "../event/batch_reader.ts";
import { SOURCE_LIFECYCLE_STREAM, SOURCE_RETIRED_KIND } from "../event/system_names.ts";
import type { LineageMarker, PreparedBatch, Receipt, RetirementReceipt } from "../event/types.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import { type Maybe, whenKnown } from "../maybe.ts";
import { type LogState, retirementBatchId } from "./log_state.ts";

/** A batch to commit, and the response once it is durable. */
export interface Commitment<Answer> {
  batch: PreparedBatch;
  answerFor: (entry: BatchEntry) => Answer;
}

/** The outcome of checking a mutation: a response without a commit, or a batch to commit. */
export type Decision<Answer> = { answer: Answer } | Commitment<Answer>;

/** Facts about the log. Of the values, only a batch id can contain spaces. */
const FACT = {
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
  /** Lists the facts that it changes, which can be 10,000 streams. */
  changes(): string[];
  /** Checks the mutation against the durable state. @throws {ApiError} if it is rejected. */
  decide(state: LogState): Maybe<Decision<Answer>>;
}

/** Commits a batch once; a retry gets the original receipt. */
export function appendMutation(batch: PreparedBatch): Mutation<Receipt> {
  const { source, batchId, precondition, lineage, events } = batch;
  const reads = [FACT.batch(source, batchId), FACT.lifecycle(source)];
  if (precondition) reads.push(FACT.stream(source, precondition.stream));
  if (lineage) reads.push(FACT.source(source), FACT.lifecycle(lineage.predecessor_source));
  return {
    reads,
    changes: () => [
      FACT.batch(source, batchId),
      FACT.source(source),
      ...events.streams.map(({ stream }) => FACT.stream(source, stream)),
      ...lineage ? [FACT.lifecycle(source)] : [],
    ],
    decide: (state) => decideAppend(batch, state),
  };
}

/** Checks in this order: duplicate, retirement, lineage, precondition. */
function decideAppend(batch: PreparedBatch, state: LogState): Maybe<Decision<Receipt>> {
  const { source, batchId, lineage } = batch;
  return whenKnown(state.findBatch(source, batchId), (known) => {
    if (known !== null) return { answer: repeatedReceipt(batch, known) };
    return whenKnown(state.findRetirement(source), (retirement) => {
      if (retirement !== null) {
        const message = `source ${source} is retired and accepts no more batches`;
        throw new ApiError("source_retired", message, { source, ...retirement });
      }
      const lineageChecked = lineage && assertLineage(source, lineage, state);
      return whenKnown(lineageChecked, () =>
        whenKnown(checkPrecondition(batch, state), () => ({
          batch,
          answerFor: (entry: BatchEntry) => receipt("committed", entry),
        })));
    });
  });
}

function repeatedReceipt(batch: PreparedBatch, known: BatchEntry): Receipt {
  if (batch.batchDigest === known.batch_digest) return receipt("duplicate", known);
  throw new ApiError(
    "batch_id_conflict",
    "this batch_id was committed with different events; use a new batch_id for new events",
    { source: batch.source, batch_id: batch.batchId },
  );
}

function receipt(status: Receipt["status"], entry: BatchEntry): Receipt {
  const { batch_digest, events, first_event_id, last_event_id } = entry;
  return { status, batch_digest, events, first_event_id, last_event_id };
}

/** A first batch, the only one with lineage, can afford promises. */
async function assertLineage(
  source: string,
  lineage: LineageMarker,
  state: LogState,
): Promise<void> {
  const { predecessor_source, predecessor_final_frontier } = lineage;
  const retirement = await state.findRetirement(predecessor_source);
  const actual = retirement?.final_frontier ?? null;
  const conflict = (message: string) =>
    new ApiError("source_lineage_conflict", message, {
      source,
      predecessor_source,
      expected_predecessor_frontier: predecessor_final_frontier,
      actual_predecessor_frontier: actual,
    });
  if (await state.sourceFrontier(source) !== null) {
    throw conflict(`source ${source} has committed events; only a first batch may declare lineage`);
  }
  if (actual === null) throw conflict(`source ${predecessor_source} is not retired`);
  if (actual !== predecessor_final_frontier) {
    throw conflict(`source ${predecessor_source} was retired at a different event`);
  }
}

function checkPrecondition({ source, precondition }: PreparedBatch, state: LogState): Maybe<void> {
  if (precondition === undefined) return;
  const { stream, expectedFrontier } = precondition;
  return whenKnown(state.streamFrontier(source, stream), (actualFrontier) => {
    if (actualFrontier === expectedFrontier) return;
    throw new ApiError(
      "stream_frontier_conflict",
      `the last event in stream ${stream} of source ${source} is not the expected one`,
      { source, stream, expected_frontier: expectedFrontier, actual_frontier: actualFrontier },
    );
  });
}

/** Retires a source once; later calls get the same receipt. */
export function retireMutation(source: string): Mutation<RetirementReceipt> {
  return {
    reads: [FACT.source(source), FACT.lifecycle(source)],
    changes: () => [FACT.lifecycle(source)],
    decide: (state) => decideRetirement(source, state),
  };
}

async function decideRetirement(
  source: string,
  state: LogState,
): Promise<Decision<RetirementReceipt>> {
  const retirement = await state.findRetirement(source);
  if (retirement !== null) {
    return { answer: { v: 1, status: "already_retired", source, ...retirement } };
  }
  const final_frontier = await state.sourceFrontier(source);
  if (final_frontier === null) {
    throw new ApiError("source_not_found", `source ${source} has no committed events`, { source });
  }
  return {
    batch: prepareSystemBatch(retirementBatchId(source, final_frontier), {
      stream: SOURCE_LIFECYCLE_STREAM,
      record_key: source,
      kind: SOURCE_RETIRED_KIND,
      payload: { v: 1, source, final_frontier },
    }),
    answerFor: ({ first_event_id: retirement_event_id }) => {
      return { v: 1, status: "retired", source, final_frontier, retirement_event_id };
    },
  };
}
