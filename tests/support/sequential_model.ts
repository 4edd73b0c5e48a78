/**
 * The service as a small sequential program: the contract's response to a mutation, given all
 * earlier batches. Ids are taken from the log, because only the service assigns them.
 */
import { Buffer } from "node:buffer";
import { prepareBatch } from "../../src/event/batch_reader.ts";
import type { StreamSummary } from "../../src/event/types.ts";
import type { LoggedBatch } from "./history.ts";
import type { Outcome } from "./outcome.ts";
import type { Mutation, SubmittedBatch } from "./submitted.ts";

type Append = Extract<Mutation, { kind: "append" }>;

interface Retirement {
  final_frontier: string;
  retirement_event_id: string;
}

export class SequentialModel {
  /** Receipts of all batches. */
  #batches = new Map<string, Record<string, unknown>>();
  /** The id of each source's last event. */
  #sources = new Map<string, string>();
  #streams = new Map<string, StreamSummary>();
  #retirements = new Map<string, Retirement>();

  /** An independent copy. */
  copy(): SequentialModel {
    const copy = new SequentialModel();
    copy.#batches = new Map(this.#batches);
    copy.#sources = new Map(this.#sources);
    copy.#streams = new Map(this.#streams);
    copy.#retirements = new Map(this.#retirements);
    return copy;
  }

  /** The response to a mutation that commits nothing, or null if it commits. */
  answer(mutation: Mutation): Outcome | null {
    return mutation.kind === "append"
      ? this.#answerAppend(mutation)
      : this.#answerRetire(mutation.source);
  }

  /** Records the batch that a mutation has committed. @returns the mutation's response. */
  commit(mutation: Mutation, logged: LoggedBatch): Outcome {
    const first = logged.events[0]!.event_id;
    const last = logged.events.at(-1)!.event_id;
    const outcome = mutation.kind === "append"
      ? this.#commitAppend(mutation, logged, first, last)
      : this.#commitRetire(mutation.source, first);
    this.#sources.set(logged.source, last);
    for (const { event_id, source, stream } of logged.events) {
      const event_count = (this.#streams.get(`${source} ${stream}`)?.event_count ?? 0) + 1;
      const row = { source, stream, frontier_event_id: event_id, event_count };
      this.#streams.set(`${source} ${stream}`, row);
    }
    return outcome;
  }

  /** All streams in order. */
  streams(): StreamSummary[] {
    return [...this.#streams].sort(([a], [b]) => a < b ? -1 : 1).map(([, row]) => row);
  }

  #answerAppend(mutation: Append): Outcome | null {
    const { batch, batch: { source, batch_id } } = mutation;
    const receipt = this.#batches.get(`${source} ${batch_id}`);
    if (receipt !== undefined) {
      return receipt["batch_digest"] === digestOf(mutation)
        ? ok({ ...receipt, status: "duplicate" })
        : refused(409, "batch_id_conflict", { source, batch_id });
    }
    const retirement = this.#retirements.get(source);
    if (retirement !== undefined) return refused(409, "source_retired", { source, ...retirement });
    return this.#lineageConflict(batch) ?? this.#frontierConflict(batch);
  }

  #lineageConflict({ source, events }: SubmittedBatch): Outcome | null {
    const marker = events[0]!;
    if (marker.stream !== "service.source_lineage") return null;
    const { predecessor_source, predecessor_final_frontier } = marker.payload as {
      predecessor_source: string;
      predecessor_final_frontier: string;
    };
    const actual = this.#retirements.get(predecessor_source)?.final_frontier ?? null;
    if (actual === predecessor_final_frontier && !this.#sources.has(source)) return null;
    return refused(409, "source_lineage_conflict", {
      source,
      predecessor_source,
      expected_predecessor_frontier: predecessor_final_frontier,
      actual_predecessor_frontier: actual,
    });
  }

  #frontierConflict({ source, stream_precondition: precondition }: SubmittedBatch): Outcome | null {
    if (precondition === undefined) return null;
    const { stream, expected_frontier } = precondition;
    const actual_frontier = this.#streams.get(`${source} ${stream}`)?.frontier_event_id ?? null;
    if (actual_frontier === expected_frontier) return null;
    const context = { source, stream, expected_frontier, actual_frontier };
    return refused(409, "stream_frontier_conflict", context);
  }

  #answerRetire(source: string): Outcome | null {
    const retirement = this.#retirements.get(source);
    if (retirement !== undefined) {
      return ok({ v: 1, status: "already_retired", source, ...retirement });
    }
    return this.#sources.has(source) ? null : refused(404, "source_not_found", { source });
  }

  #commitAppend(mutation: Append, logged: LoggedBatch, first: string, last: string): Outcome {
    const receipt = {
      status: "committed",
      batch_digest: digestOf(mutation),
      events: logged.events.length,
      first_event_id: first,
      last_event_id: last,
    };
    this.#batches.set(`${logged.source} ${logged.batchId}`, receipt);
    return ok(receipt);
  }

  #commitRetire(source: string, eventId: string): Outcome {
    const retirement = {
      final_frontier: this.#sources.get(source)!,
      retirement_event_id: eventId,
    };
    this.#retirements.set(source, retirement);
    return ok({ v: 1, status: "retired", source, ...retirement });
  }
}

function digestOf({ batch, digest }: Append): string {
  return digest ?? prepareBatch(Buffer.from(JSON.stringify(batch))).batchDigest;
}

function ok(body: Record<string, unknown>): Outcome {
  return { status: 200, body };
}

function refused(status: number, error: string, context: Record<string, unknown>): Outcome {
  return { status, body: { error, ...context } };
}
