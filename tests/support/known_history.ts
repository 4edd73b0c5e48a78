/**
 * What is known of a log from outside: the sequential model with the answers that were given, the
 * events that were read, and the mutations of which nobody knows whether they were committed.
 * Mutations are decided in the order in which they were submitted.
 */
import assert from "node:assert/strict";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { EventLog } from "../../src/service/event_log.ts";
import { isBatchOf, type LoggedBatch, loggedBatches, type Mutation } from "./history.ts";
import { type Outcome, statusOf } from "./outcome.ts";
import { SequentialModel } from "./sequential_model.ts";
import { answerTo } from "./submitted.ts";

/** A mutation that was submitted. */
interface Call {
  mutation: Mutation;
  /** Null while there is no answer. */
  outcome: Outcome | null;
  /** Of those that share a commit. */
  group: number | null;
}

/** Answers that say that nothing was committed, for a reason that the model does not know. */
const WITHOUT_EFFECT = new Set<unknown>(["storage_full", "failed"]);

export class KnownHistory {
  model = new SequentialModel();
  /** Everything that is committed for certain. */
  readonly events: CommittedEvent[] = [];
  /** All that was submitted, from the first to the last. */
  readonly mutations: Mutation[] = [];
  /** How many mutations were answered with a receipt. */
  receipts = 0;
  /** Told of each batch that is known to be committed. */
  onCommit: (batch: LoggedBatch) => void = () => {};
  /** The same as replay returns it. */
  #text = "";
  /** Calls whose outcome is uncertain or was not compared yet, in their order. */
  #open: Call[] = [];

  get text(): string {
    return this.#text;
  }

  /** Last event that is known to be committed; undefined when there is none. */
  get frontier(): string | undefined {
    return this.events.at(-1)?.event_id;
  }

  /** What is known now, apart from what will be. */
  copy(): KnownHistory {
    const copy = new KnownHistory();
    copy.model = this.model.copy();
    copy.events.push(...this.events);
    copy.mutations.push(...this.mutations);
    copy.receipts = this.receipts;
    copy.#text = this.#text;
    copy.#open = this.#open.map((call) => ({ ...call }));
    return copy;
  }

  /**
   * Submits a mutation and takes down its answer.
   * @param attempt how it is done; null when it failed in a way that clients are not told of.
   * @param group number of those that share a commit: they are there together or not at all.
   */
  async submit(
    log: EventLog,
    mutation: Mutation,
    { attempt = (work) => work(), group = null }: {
      attempt?: (work: () => Promise<Outcome>) => Promise<Outcome | null>;
      group?: number | null;
    } = {},
  ): Promise<Outcome> {
    const call: Call = { mutation, outcome: null, group };
    this.mutations.push(mutation);
    this.#open.push(call);
    const outcome = await attempt(() => answerTo(log, mutation)) ??
      { status: 500, body: { error: "failed" } };
    call.outcome = outcome;
    if (outcome.status === 200) this.receipts += 1;
    return outcome;
  }

  /** Holds the answers to the events that came since, which a process shows: only acknowledged. */
  shows(text: string): void {
    const batches = this.#take(text);
    const answered = this.#open;
    this.#open = answered.filter(isUncertain);
    for (const call of answered) if (!isUncertain(call)) this.#place(call, batches);
    assert.deepEqual(batches, [], "nothing is shown that was not acknowledged");
  }

  /**
   * Holds all that was submitted to what a new process shows after what was known: what was
   * acknowledged, and of what is uncertain in a process the first part, each batch whole.
   */
  settle(text: string): void {
    const batches = this.#take(text);
    const groups = new Map<number, boolean>();
    let isCut = false;
    for (const call of this.#open) {
      const { mutation, group } = call;
      const left = batches.length;
      if (!isUncertain(call)) {
        this.#place(call, batches);
      } else if (!isCut && this.model.answer(mutation) === null) {
        isCut = batches.length === 0 || !isBatchOf(mutation, batches[0]!);
        if (!isCut) this.#commit(mutation, batches.shift());
      }
      const isHeld = batches.length < left;
      // Committed, so by a process after the one that ended.
      if (isHeld) isCut = false;
      if (group === null) continue;
      assert.equal(groups.get(group) ?? isHeld, isHeld, "a commit is there as a whole");
      groups.set(group, isHeld);
    }
    assert.deepEqual(batches, [], "nothing is there that was not submitted");
    this.#open = [];
  }

  /** Holds an answer to what the model gives, which takes the next of the batches if any. */
  #place({ mutation, outcome }: Call, batches: LoggedBatch[]): void {
    if (WITHOUT_EFFECT.has(statusOf(outcome!))) return;
    const answer = this.model.answer(mutation) ?? this.#commit(mutation, batches.shift());
    assert.deepEqual(outcome, answer, describe(mutation));
  }

  #commit(mutation: Mutation, batch: LoggedBatch | undefined): Outcome {
    assert.ok(batch !== undefined, `not in the log: ${describe(mutation)}`);
    const { source, batchId } = batch;
    const label = `${describe(mutation)}, in the log ${source} ${batchId}`;
    assert.ok(isBatchOf(mutation, batch), `${label}: as it was submitted`);
    this.onCommit(batch);
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

function isUncertain({ outcome }: Call): boolean {
  return outcome === null || statusOf(outcome) === "writer_poisoned";
}

function describe(mutation: Mutation): string {
  if (mutation.kind === "retire") return `retire ${mutation.source}`;
  return `${mutation.batch.source} ${mutation.batch.batch_id}`;
}
