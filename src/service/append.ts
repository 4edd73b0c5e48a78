/** Checks a submitted batch in this order: duplicate, retirement, lineage, precondition. */
import { ApiError } from "../event/api_error.ts";
import type { LineageMarker, PreparedBatch, Receipt } from "../event/types.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import { type Maybe, whenKnown } from "../maybe.ts";
import type { LogState, Retirement } from "./log_state.ts";
import { type Decision, FACT, type Mutation } from "./mutation.ts";

/** Commits a batch once; a retry gets the original receipt. */
export function appendMutation(batch: PreparedBatch): Mutation<Receipt> {
  const { source, batchId, precondition, lineage, events } = batch;
  const reads = [FACT.batch(source, batchId), FACT.lifecycle(source)];
  const changes = [FACT.batch(source, batchId), FACT.source(source)];
  if (lineage !== undefined) {
    reads.push(FACT.source(source), FACT.lifecycle(lineage.predecessorSource));
    changes.push(FACT.lifecycle(source));
  }
  return {
    reads,
    readsStream: precondition && FACT.stream(source, precondition.stream),
    changes,
    changedStreams: () => events.streams.map(({ stream }) => FACT.stream(source, stream)),
    decide: (state) => decide(batch, state),
  };
}

function decide(batch: PreparedBatch, state: LogState): Maybe<Decision<Receipt>> {
  const { source, batchId, lineage } = batch;
  return whenKnown(state.findBatch(source, batchId), (known) => {
    if (known !== null) return { answer: repeatedReceipt(batch, known) };
    return whenKnown(state.findRetirement(source), (retirement) => {
      assertNotRetired(source, retirement);
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

function assertNotRetired(source: string, retirement: Retirement | null): void {
  if (retirement === null) return;
  throw new ApiError("source_retired", `source ${source} is retired and accepts no more batches`, {
    source,
    final_frontier: retirement.finalFrontier,
    retirement_event_id: retirement.retirementEventId,
  });
}

/** A first batch, the only one with lineage, can afford promises. */
async function assertLineage(
  source: string,
  lineage: LineageMarker,
  state: LogState,
): Promise<void> {
  const { predecessorSource, predecessorFinalFrontier } = lineage;
  const retirement = await state.findRetirement(predecessorSource);
  const actual = retirement?.finalFrontier ?? null;
  const conflict = (message: string) =>
    new ApiError("source_lineage_conflict", message, {
      source,
      predecessor_source: predecessorSource,
      expected_predecessor_frontier: predecessorFinalFrontier,
      actual_predecessor_frontier: actual,
    });
  if (await state.sourceFrontier(source) !== null) {
    throw conflict(`source ${source} has committed events; only a first batch may declare lineage`);
  }
  if (actual === null) throw conflict(`source ${predecessorSource} is not retired`);
  if (actual !== predecessorFinalFrontier) {
    throw conflict(`source ${predecessorSource} was retired at a different event`);
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
