/**
 * What was submitted to a log, and what was answered: from that alone follows what the log must
 * hold after whatever happened to it. Nothing in here knows how a log keeps it.
 */
import assert from "node:assert/strict";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import type { EventLog } from "../../../src/service/event_log.ts";
import { type Call, isBatchOf, loggedBatches, type Mutation } from "../../support/history.ts";
import { checkHistory } from "../../support/history_check.ts";
import { KnownHistory } from "../../support/known_history.ts";
import { type Outcome, statusOf } from "../../support/outcome.ts";
import { replayText } from "../../support/stream_listing.ts";
import { answerTo, submittedEvent } from "../../support/submitted.ts";

export class Ledger {
  readonly #calls: Call[] = [];
  /** Those that share a commit, as places among the calls. */
  readonly #commits: number[][] = [];
  #now = 0;

  /** From the first to the last. */
  get calls(): readonly Call[] {
    return this.#calls;
  }

  get receipts(): number {
    return this.#calls.filter(isAcknowledged).length;
  }

  /** What is known now, apart from what will be. */
  copy(): Ledger {
    const copy = new Ledger();
    copy.#calls.push(...this.#calls.map((call) => ({ ...call })));
    copy.#commits.push(...this.#commits);
    copy.#now = this.#now;
    return copy;
  }

  /** Submits at once and takes down what is answered. */
  async submit(log: EventLog, mutation: Mutation): Promise<Outcome> {
    const call: Call = { mutation, invokedAt: this.#now++, answeredAt: Infinity, outcome: null };
    this.#calls.push(call);
    const outcome = await answerTo(log, mutation);
    call.outcome = outcome;
    call.answeredAt = this.#now++;
    return outcome;
  }

  /** The same of several that share a commit: they are there together or not at all. */
  submitTogether(log: EventLog, mutations: readonly Mutation[]): Promise<Outcome[]> {
    this.#commits.push(mutations.map((_, place) => this.#calls.length + place));
    return Promise.all(mutations.map((mutation) => this.submit(log, mutation)));
  }

  /**
   * Holds the events of a log to what was submitted: every acknowledged batch is there, whole, with
   * its ids; of the others each is whole or not there; there is nothing else, and nothing twice.
   */
  assertHeldBy(events: readonly CommittedEvent[]): void {
    checkHistory({ calls: this.#calls, events });
    const batches = loggedBatches(events);
    for (const places of this.#commits) {
      const held = places.filter((place) =>
        batches.some((batch) => isBatchOf(this.#calls[place]!.mutation, batch))
      );
      assert.ok([0, places.length].includes(held.length), "a commit is there as a whole");
    }
  }

  /** That all events are of batches that were acknowledged, or submitted before the `since`th. */
  assertAcknowledged(events: readonly CommittedEvent[], since: number): void {
    const allowed = this.#calls.filter((call, place) => isAcknowledged(call) || place < since);
    const others = loggedBatches(events).filter((batch) =>
      !allowed.some(({ mutation }) => isBatchOf(mutation, batch))
    );
    assert.deepEqual(others, [], "nothing is shown that may not be there");
  }

  /**
   * Submits everything again, in order: what the log holds is answered from it, and the rest is
   * taken now, unless what it holds by now forbids it. Then the log holds all that it can.
   */
  async submitAgain(log: EventLog, events: readonly CommittedEvent[]): Promise<void> {
    const model = checkHistory({ calls: this.#calls, events });
    const known = new KnownHistory({ model, events });
    for (const { mutation } of [...this.#calls]) {
      const outcome = await this.submit(log, mutation);
      known.answered([{ mutation, outcome }], await replayText(log, known.frontier));
    }
    await this.#assertConflict(log, known);
  }

  /** A batch id that the log knows is not taken for other events. */
  async #assertConflict(log: EventLog, { events }: KnownHistory): Promise<void> {
    const last = events.findLast(({ source }) => source !== "system");
    if (last === undefined) return;
    const { source, batch_id } = last;
    const batch = { source, batch_id, events: [submittedEvent("orders", "other events")] };
    const outcome = await answerTo(log, { kind: "append", batch });
    assert.equal(statusOf(outcome), "batch_id_conflict");
  }
}

function isAcknowledged({ outcome }: Call): boolean {
  return outcome?.status === 200;
}
