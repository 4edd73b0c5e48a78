/** The decision on a submitted batch, in the order of checks of the contract (section 3). */
import { ApiError } from "../event/api_error.ts";
import { SYSTEM_SOURCE } from "../event/system_names.ts";
import type { PreparedBatch, Receipt } from "../event/types.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import type { LogState } from "./log_state.ts";
import type { CommitGroup, Decision, Mutation } from "./mutation.ts";

/** Commits a batch once, or answers from the one committed before. */
export function appendMutation(batch: PreparedBatch): Mutation<Receipt> {
  return {
    dependsOn: (group) => dependsOn(batch, group),
    decide: (state) => decide(batch, state),
  };
}

/**
 * Any batch may follow its source's others; one with a condition waits for what the condition
 * reads.
 */
function dependsOn({ source, batchId, precondition, lineage }: PreparedBatch, group: CommitGroup) {
  return group.hasBatch(source, batchId) ||
    // A retirement, of this source or of its predecessor.
    group.hasSource(SYSTEM_SOURCE) ||
    ((precondition !== undefined || lineage !== undefined) && group.hasSource(source));
}

async function decide(batch: PreparedBatch, state: LogState): Promise<Decision<Receipt>> {
  const known = await state.findBatch(batch.source, batch.batchId);
  if (known !== null) return { answer: repeatedReceipt(batch, known) };
  await assertNotRetired(batch, state);
  await assertLineage(batch, state);
  await assertPrecondition(batch, state);
  return { batch, answerFor: (entry) => receipt("committed", entry) };
}

function repeatedReceipt(batch: PreparedBatch, known: BatchEntry): Receipt {
  if (batch.batchDigest === known.batch_digest) return receipt("duplicate", known);
  throw new ApiError(
    "batch_id_conflict",
    "this batch_id was committed with other events; use a new batch_id for new events",
    { source: batch.source, batch_id: batch.batchId },
  );
}

function receipt(status: Receipt["status"], entry: BatchEntry): Receipt {
  const { batch_digest, events, first_event_id, last_event_id } = entry;
  return { status, batch_digest, events, first_event_id, last_event_id };
}

async function assertNotRetired({ source }: PreparedBatch, state: LogState): Promise<void> {
  const retirement = await state.findRetirement(source);
  if (retirement === null) return;
  throw new ApiError("source_retired", `source ${source} is retired and takes no more batches`, {
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
    throw conflict(`source ${source} has committed events; only its first batch declares lineage`);
  }
  if (actual === null) throw conflict(`source ${predecessorSource} is not retired`);
  if (actual !== predecessorFinalFrontier) {
    throw conflict(`source ${predecessorSource} was retired at another event`);
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
    `stream ${stream} of source ${source} is not at the expected event`,
    { source, stream, expected_frontier: expectedFrontier, actual_frontier: actualFrontier },
  );
}
