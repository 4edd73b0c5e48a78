/**
 * What is known of a log from outside: the sequential model with the answers that were given, the
 * events that were read, and the mutations of which nobody knows whether they were committed.
 */
import assert from "node:assert/strict";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import { isBatchOf, type LoggedBatch, loggedBatches, type Mutation } from "./history.ts";
import { type Outcome, statusOf } from "./outcome.ts";
import { SequentialModel } from "./sequential_model.ts";

/** A mutation and what was answered. */
export interface Answered {
  mutation: Mutation;
  outcome: Outcome;
}

/** Answers that say that nothing was committed, for a reason that the model does not know. */
const WITHOUT_EFFECT = new Set<unknown>(["storage_full", "failed"]);

export class KnownHistory {
  readonly model: SequentialModel;
  /** Everything that is committed for certain. */
  readonly events: CommittedEvent[];
  readonly #onCommit: (batch: LoggedBatch) => void;
  /** The same as replay returns it. */
  #text = "";
  /** Calls whose outcome is uncertain or was not seen yet, in their order. */
  #open: Answered[] = [];

  constructor({ model = new SequentialModel(), events = [], onCommit = () => {} }: {
    /** What is known at first. */
    model?: SequentialModel;
    events?: readonly CommittedEvent[];
    /** Told of each batch that is known to be committed. */
    onCommit?: (batch: LoggedBatch) => void;
  } = {}) {
    this.model = model;
    this.events = [...events];
    this.#onCommit = onCommit;
  }

  get text(): string {
    return this.#text;
  }

  /** Last event that is known to be committed; undefined when there is none. */
  get frontier(): string | undefined {
    return this.events.at(-1)?.event_id;
  }

  /** Answers were given; `text` are the events that came since, as replay gives them. */
  answered(calls: readonly Answered[], text: string): void {
    const batches = this.#take(text);
    for (const call of calls) {
      if (isUncertain(call)) this.#open.push(call);
      else this.#place(call, batches);
    }
    assert.deepEqual(batches, [], "nothing is shown that was not acknowledged");
  }

  /** Answers were given, and then the machine was off: what came of them is seen later. */
  answeredLast(calls: readonly Answered[]): void {
    this.#open.push(...calls);
  }

  /**
   * A new process shows what is there after all that was known: what was acknowledged, and of what
   * is uncertain the first part, each batch whole.
   */
  settle(text: string): void {
    const batches = this.#take(text);
    for (const call of this.#open) {
      const { mutation } = call;
      if (!isUncertain(call)) this.#place(call, batches);
      else if (batches.length > 0 && this.model.answer(mutation) === null) {
        this.#commit(mutation, batches.shift());
      }
    }
    assert.deepEqual(batches, [], "nothing is there that was not submitted");
    this.#open = [];
  }

  /** Holds an answer to what the model gives, which takes the next of the batches if any. */
  #place({ mutation, outcome }: Answered, batches: LoggedBatch[]): void {
    if (WITHOUT_EFFECT.has(statusOf(outcome))) return;
    const answer = this.model.answer(mutation) ?? this.#commit(mutation, batches.shift());
    assert.deepEqual(outcome, answer, describe(mutation));
  }

  #commit(mutation: Mutation, batch: LoggedBatch | undefined): Outcome {
    assert.ok(batch !== undefined, `not in the log: ${describe(mutation)}`);
    const { source, batchId } = batch;
    const label = `${describe(mutation)}, in the log ${source} ${batchId}`;
    assert.ok(isBatchOf(mutation, batch), `${label}: as it was submitted`);
    this.#onCommit(batch);
    return this.model.commit(mutation, batch);
  }

  /** Takes in the events that have come, and gives their batches. */
  #take(text: string): LoggedBatch[] {
    if (text === "") return [];
    const events: CommittedEvent[] = JSON.parse(`[${text}]`);
    const batches = loggedBatches(events, this.frontier);
    this.events.push(...events);
    this.#text += (this.#text === "" ? "" : ",") + text;
    return batches;
  }
}

function isUncertain({ outcome }: Answered): boolean {
  return statusOf(outcome) === "writer_poisoned";
}

function describe(mutation: Mutation): string {
  if (mutation.kind === "retire") return `retire ${mutation.source}`;
  return `${mutation.batch.source} ${mutation.batch.batch_id}`;
}
