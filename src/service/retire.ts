/** Retires sources by appending one system event for each. */
import { ApiError } from "../event/api_error.ts";
import { canonicalize } from "../event/json/canonical_json.ts";
import { encodeBatch } from "../event/batch_encoder.ts";
import {
  SOURCE_LIFECYCLE_STREAM,
  SOURCE_RETIRED_KIND,
  SYSTEM_SOURCE,
} from "../event/system_names.ts";
import type { PreparedBatch, RetirementReceipt } from "../event/types.ts";
import { type LogState, type Retirement, retirementBatchId } from "./log_state.ts";
import { type Decision, FACT, type Mutation } from "./mutation.ts";

/** Retires a source once; later calls get the same receipt. */
export function retireMutation(source: string): Mutation<RetirementReceipt> {
  return {
    reads: [FACT.source(source), FACT.lifecycle(source)],
    changes: [FACT.lifecycle(source)],
    decide: (state) => decide(source, state),
  };
}

async function decide(source: string, state: LogState): Promise<Decision<RetirementReceipt>> {
  const retirement = await state.findRetirement(source);
  if (retirement !== null) return { answer: receipt("already_retired", source, retirement) };
  const finalFrontier = await state.sourceFrontier(source);
  if (finalFrontier === null) {
    throw new ApiError("source_not_found", `source ${source} has no committed events`, { source });
  }
  return {
    batch: retirementBatch(source, finalFrontier),
    answerFor: (entry) =>
      receipt("retired", source, { finalFrontier, retirementEventId: entry.first_event_id }),
  };
}

function retirementBatch(source: string, finalFrontier: string): PreparedBatch {
  return encodeBatch({
    source: SYSTEM_SOURCE,
    batchId: retirementBatchId(source, finalFrontier),
    events: [{
      stream: SOURCE_LIFECYCLE_STREAM,
      recordKey: source,
      kind: SOURCE_RETIRED_KIND,
      occurredAt: undefined,
      payload: canonicalize({ v: 1, source, final_frontier: finalFrontier }),
    }],
    precondition: undefined,
    lineage: undefined,
  });
}

function receipt(
  status: RetirementReceipt["status"],
  source: string,
  { finalFrontier, retirementEventId }: Retirement,
): RetirementReceipt {
  return {
    v: 1,
    status,
    source,
    final_frontier: finalFrontier,
    retirement_event_id: retirementEventId,
  };
}
