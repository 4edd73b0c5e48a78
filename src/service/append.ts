/** Checks a submitted batch in this order: duplicate, retirement, lineage, precondition. */
import { ApiError } from "../event/api_error.ts";
import { SYSTEM_SOURCE } from "../event/system_names.ts";
import type { PreparedBatch, Receipt } from "../event/types.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import type { LogState } from "./log_state.ts";
import type { Decision, Mutation } from "./mutation.ts";

/** Commits a batch once; a retry gets the original receipt. */
export function appendMutation(batch: PreparedBatch): Mutation<Receipt> {
  const { source, batchId, precondition, lineage } = batch;
  const isConditional = precondition !== undefined || lineage !== undefined;
  return {
    dependsOn: (group) =>
      group.get(source)?.has(batchId) === true ||
      // A batch from the system source may retire this batch's source or its predecessor.
      group.has(SYSTEM_SOURCE) ||
      (isConditional && group.has(source)),
    decide: (state) => decide(batch, state),
  };
}

async function decide(batch: PreparedBatch, state: LogState): Promise<Decision<Receipt>> {
  const known = await state.findBatch(batch.source, batch.batchId);
  if (known !== null) {
    if (batch.batchDigest === known.batch_digest) return { answer: receipt("duplicate", known) };
    throw new ApiError(
      "batch_id_conflict",
      "this batch_id was committed with different events; use a new batch_id for new events",
      { source: batch.source, batch_id: batch.batchId },
    );
  }
  await assertNotRetired(batch, state);
  await assertLineage(batch, state);
  await assertPrecondition(batch, state);
  return { batch, answerFor: (entry) => receipt("committed", entry) };
}

function receipt(status: Receipt["status"], entry: BatchEntry): Receipt {
  const { batch_digest, events, first_event_id, last_event_id } = entry;
  return { status, batch_digest, events, first_event_id, last_event_id };
}

async function assertNotRetired({ source }: PreparedBatch, state: LogState): Promise<void> {
  const retirement = await state.findRetirement(source);
  if (retirement === null) return;
  throw new ApiError("source_retired", `source ${source} is retired and accepts no more batches`, {
    source,
    final_frontier: retirement.finalFrontier,
    retirement_event_id: retirement.retirementEventId,
  });
}

async function assertLineage(
  { source, lineage }: PreparedBatch,
  state: LogState,
): Promise<void> {
  if (lineage === undefined) return;
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

async function assertPrecondition(
  { source, precondition }: PreparedBatch,
  state: LogState,
): Promise<void> {
  if (precondition === undefined) return;
  const { stream, expectedFrontier } = precondition;
  const actualFrontier = await state.streamFrontier(source, stream);
  if (actualFrontier === expectedFrontier) return;
  throw new ApiError(
    "stream_frontier_conflict",
    `the last event in stream ${stream} of source ${source} is not the expected one`,
    { source, stream, expected_frontier: expectedFrontier, actual_frontier: actualFrontier },
  );
}
