/**
 * The clients' knowledge of a log: a sequential model of the responses so far, the events read, and
 * the mutations whose outcome is unknown. Outcomes are determined in order of submission, except
 * that a mutation that depends on another one may wait while later ones are committed.
 */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import { isBatchOf, type LoggedBatch, loggedBatches, mayDepend } from "./history.ts";
import { type Outcome, statusOf } from "./outcome.ts";
import { SequentialModel } from "./sequential_model.ts";
import { answerTo, type Mutation } from "./submitted.ts";

/** A submitted mutation. */
interface Call {
  mutation: Mutation;
  /** Null until the service responds. */
  outcome: Outcome | null;
  /** Number of the group of mutations that must share a commit; null without a group. */
  group: number | null;
}

/** Errors that commit nothing and that the model does not predict. */
const WITHOUT_EFFECT = new Set<unknown>(["storage_full", "failed"]);

export class KnownHistory {
  model = new SequentialModel();
  /** All events known to be committed. */
  readonly events: CommittedEvent[] = [];
  /** All submitted mutations, in order. */
  readonly mutations: Mutation[] = [];
  /** Number of mutations that got a receipt. */
  receipts = 0;
  /** Called with each batch once it is known to be committed. */
  onCommit: (batch: LoggedBatch) => void = () => {};
  /** The events in replay format. */
  #text = "";
  /** Calls whose outcome is unknown or not yet checked, in order. */
  #open: Call[] = [];

  get text(): string {
    return this.#text;
  }

  /** The id of the last event known to be committed, or undefined. */
  get frontier(): string | undefined {
    return this.events.at(-1)?.event_id;
  }

  /** An independent copy. */
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
   * Submits a mutation and records its response.
   * @param attempt makes the call; returns null if a fault invisible to clients made it fail.
   * @param group number of a group of mutations that are committed atomically.
   */
  async submit(
    log: EventLogService,
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

  /** Checks the responses against new events from a process. Every event must be acknowledged. */
  shows(text: string): void {
    const batches = this.#take(text);
    const answered = this.#open;
    this.#open = answered.filter(isUncertain);
    this.#placeAll(answered, (call) => isUncertain(call) || this.#place(call, batches));
    assert.deepEqual(batches, [], "only acknowledged batches are shown");
  }

  /**
   * Checks all submitted mutations against the new events that a restarted process returns. The
   * events must contain every acknowledged batch and, for each process that ended, a prefix of its
   * batches whose outcome is unknown. Every batch must be complete.
   */
  settle(text: string): void {
    const batches = this.#take(text);
    const groups = new Map<number, boolean>();
    let isCut = false;
    const place = (call: Call): boolean => {
      const { mutation, group } = call;
      const left = batches.length;
      let isPlaced = true;
      if (!isUncertain(call)) {
        isPlaced = this.#place(call, batches);
      } else if (!isCut && this.model.answer(mutation) === null) {
        isPlaced = batches.length > 0 && isBatchOf(mutation, batches[0]!);
        if (isPlaced) this.#commit(mutation, batches.shift());
      }
      const isHeld = batches.length < left;
      // A later process committed the batch, so a new prefix begins here.
      if (isHeld) isCut = false;
      if (group === null) return isPlaced;
      assert.equal(groups.get(group) ?? isHeld, isHeld, "a commit is atomic");
      groups.set(group, isHeld);
      return isPlaced;
    };
    this.#placeAll(this.#open, place, (call) => {
      isCut ||= isUncertain(call);
      return isUncertain(call);
    });
    assert.deepEqual(batches, [], "only submitted batches exist");
    this.#open = [];
  }

  /**
   * Places calls in their order of submission. One that depends on an earlier call may wait, and
   * then follows later calls.
   * @param place returns false if the log and the response do not fit a call here.
   * @param isAbsent whether a call that may not wait is missing from the log. If not, it must fit.
   */
  #placeAll(
    calls: readonly Call[],
    place: (call: Call) => boolean,
    isAbsent: (call: Call) => boolean = () => false,
  ): void {
    const waiting: Call[] = [];
    for (const [index, call] of calls.entries()) {
      const mayWait = calls.slice(0, index).some(({ mutation }) =>
        mayDepend(call.mutation, mutation)
      );
      if (place(call)) {
        // Each call that is placed may let an earlier one be placed.
        for (let next = waiting.find(place); next !== undefined; next = waiting.find(place)) {
          waiting.splice(waiting.indexOf(next), 1);
        }
      } else if (mayWait) waiting.push(call);
      else if (!isAbsent(call)) this.#misfit(call);
    }
    for (const call of waiting) if (!isUncertain(call)) this.#misfit(call);
  }

  #misfit({ mutation, outcome }: Call): never {
    const expected = this.model.answer(mutation) ?? "its batch is the next one in the log";
    assert.deepEqual(outcome, expected, describe(mutation));
    throw new Error(`${describe(mutation)} does not fit`);
  }

  /** Whether a response fits the model here. If it reports a commit, consumes the next batch. */
  #place({ mutation, outcome }: Call, batches: LoggedBatch[]): boolean {
    if (WITHOUT_EFFECT.has(statusOf(outcome!))) return true;
    const answer = this.model.answer(mutation);
    if (answer !== null) return isDeepStrictEqual(outcome, answer);
    if (batches.length === 0 || !isBatchOf(mutation, batches[0]!)) return false;
    assert.deepEqual(outcome, this.#commit(mutation, batches.shift()), describe(mutation));
    return true;
  }

  #commit(mutation: Mutation, batch: LoggedBatch | undefined): Outcome {
    assert.ok(batch !== undefined, `not in the log: ${describe(mutation)}`);
    const { source, batchId } = batch;
    const label = `${describe(mutation)}, in the log ${source} ${batchId}`;
    assert.ok(isBatchOf(mutation, batch), `${label}: unchanged`);
    this.onCommit(batch);
    return this.model.commit(mutation, batch);
  }

  /** Records new events. @returns the batches that they form. */
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
