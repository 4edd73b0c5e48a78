/**
 * What was submitted to a log, and what was answered: from that alone follows what the log must
 * hold after whatever happened to it. Nothing in here knows how a log keeps it.
 */
import assert from "node:assert/strict";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";
import type { PreparedBatch, Receipt, RetirementReceipt } from "../../../src/event/types.ts";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import type { EventLog } from "../../../src/service/event_log.ts";
import { type Outcome, outcomeOf, statusOf } from "../../support/outcome.ts";
import { preparedBatch, submittedEvents } from "../../support/prepared.ts";

/** A batch, or the retirement of a source. */
export type Mutation =
  | { kind: "append"; batch: PreparedBatch }
  | { kind: "retire"; source: string };

export interface Submission {
  mutation: Mutation;
  /** The receipt; null while there is none, and when the answer was an error. */
  receipt: Receipt | RetirementReceipt | null;
}

/** The events of one batch, as replay gives them. */
type EventGroup = CommittedEvent[];

export class Ledger {
  readonly #submissions: Submission[] = [];
  /** Those that share a commit, as places among the submissions. */
  readonly #commits: number[][] = [];

  /** From the first to the last. */
  get submissions(): readonly Submission[] {
    return this.#submissions;
  }

  get receipts(): number {
    return this.#submissions.filter(({ receipt }) => receipt !== null).length;
  }

  /** What is known now, apart from what will be. */
  copy(): Ledger {
    const copy = new Ledger();
    copy.#submissions.push(...this.#submissions.map((submission) => ({ ...submission })));
    copy.#commits.push(...this.#commits);
    return copy;
  }

  /** Submits at once and takes down what is answered. */
  async submit(log: EventLog, mutation: Mutation): Promise<Outcome> {
    const submission: Submission = { mutation, receipt: null };
    this.#submissions.push(submission);
    const outcome = await answerOf(log, mutation);
    if (outcome.status === 200) submission.receipt = outcome.body as unknown as Receipt;
    return outcome;
  }

  /** The same of several that share a commit: they are there together or not at all. */
  submitTogether(log: EventLog, mutations: readonly Mutation[]): Promise<Outcome[]> {
    this.#commits.push(mutations.map((_, place) => this.#submissions.length + place));
    return Promise.all(mutations.map((mutation) => this.submit(log, mutation)));
  }

  /**
   * Holds the events of a log to what was submitted: every acknowledged batch is there, whole, with
   * its ids; of the others each is whole or not there; there is nothing else, and nothing twice.
   */
  assertHeldBy(events: readonly CommittedEvent[]): void {
    const groups = groupEvents(events);
    const held = new Set<number>();
    for (const [place, { mutation, receipt }] of this.#submissions.entries()) {
      const group = groups.get(identityOf(mutation));
      assert.ok(group !== undefined || receipt === null, `lost: ${identityOf(mutation)}`);
      if (group === undefined) continue;
      assertSame(group, mutation);
      if (receipt !== null) assertReceipt(group, receipt);
      groups.delete(identityOf(mutation));
      held.add(place);
    }
    for (const places of this.#commits) {
      const heldOf = places.filter((place) => held.has(place));
      assert.ok([0, places.length].includes(heldOf.length), "a commit is there as a whole");
    }
    assert.deepEqual([...groups.keys()], [], "nothing is there that was not submitted");
  }

  /** That all events are of batches that were acknowledged, or submitted before the `since`th. */
  assertAcknowledged(events: readonly CommittedEvent[], since: number): void {
    const allowed = new Set(
      this.#submissions
        .filter(({ receipt }, place) => receipt !== null || place < since)
        .map(({ mutation }) => identityOf(mutation)),
    );
    const others = [...groupEvents(events).keys()].filter((identity) => !allowed.has(identity));
    assert.deepEqual(others, [], "nothing is shown that may not be there");
  }

  /**
   * Submits everything again, in order: what the log holds is answered from it, and the rest is
   * taken now, unless what it holds by now forbids it. Then the log holds all that it can.
   */
  async submitAgain(log: EventLog, events: readonly CommittedEvent[]): Promise<void> {
    const groups = groupEvents(events);
    for (const { mutation, receipt } of this.copy().submissions) {
      const group = groups.get(identityOf(mutation));
      const { body } = await answerOf(log, mutation);
      const label = identityOf(mutation);
      if (group === undefined) {
        const taken = mutation.kind === "append" ? "committed" : "retired";
        const refused = mutation.kind === "append" ? "source_retired" : "source_not_found";
        const isRefused = this.#canRefuse(groups, mutation);
        assert.equal(statusOf({ status: 0, body }), isRefused ? refused : taken, label);
        continue;
      }
      assert.equal(
        body.status,
        mutation.kind === "append" ? "duplicate" : "already_retired",
        label,
      );
      assertReceipt(group, body as unknown as Receipt);
      if (receipt !== null) assert.deepEqual({ ...body, status: "" }, { ...receipt, status: "" });
    }
    await this.#assertConflict(log, events);
  }

  #canRefuse(groups: ReadonlyMap<string, EventGroup>, mutation: Mutation): boolean {
    if (mutation.kind === "append") return groups.has(`retire ${mutation.batch.source}`);
    const { source } = mutation;
    return !this.#submissions.some((other) =>
      other.mutation.kind === "append" && other.mutation.batch.source === source
    );
  }

  /** A batch id that the log knows is not taken for other events. */
  async #assertConflict(log: EventLog, events: readonly CommittedEvent[]): Promise<void> {
    const known = events.findLast(({ source }) => source !== "system");
    if (known === undefined) return;
    const other = preparedBatch(known.batch_id, {
      source: known.source,
      events: [{ payload: "other events" }],
    });
    const outcome = await outcomeOf(log.append(other));
    assert.equal(statusOf(outcome), "batch_id_conflict");
  }
}

function answerOf(log: EventLog, mutation: Mutation): Promise<Outcome> {
  return outcomeOf(
    mutation.kind === "append" ? log.append(mutation.batch) : log.retire(mutation.source),
  );
}

function identityOf(mutation: Mutation): string {
  if (mutation.kind === "retire") return `retire ${mutation.source}`;
  return `${mutation.batch.source} ${mutation.batch.batchId}`;
}

/** Batches by their identity, each of them in one piece; events in the order of their ids. */
function groupEvents(events: readonly CommittedEvent[]): Map<string, EventGroup> {
  const groups = new Map<string, EventGroup>();
  let before: CommittedEvent | null = null;
  for (const event of events) {
    assert.ok(before === null || before.event_id < event.event_id, "events are in order, once");
    const { source, batch_id: batchId, record_key: recordKey } = event;
    const identity = source === "system" ? `retire ${recordKey}` : `${source} ${batchId}`;
    const group = groups.get(identity);
    if (group === undefined) {
      groups.set(identity, [event]);
    } else {
      assert.ok(before?.source === source && before.batch_id === batchId, "a batch is one piece");
      group.push(event);
    }
    before = event;
  }
  return groups;
}

function assertSame(group: EventGroup, mutation: Mutation): void {
  if (mutation.kind === "retire") {
    const [event, ...others] = group;
    assert.deepEqual([others.length, event!.kind], [0, "source_retired"]);
    return;
  }
  const { batch } = mutation;
  const label = identityOf(mutation);
  const events = submittedEvents(batch);
  assert.equal(group.length, events.length, `${label} is whole`);
  group.forEach((event, place) => {
    const submitted = events[place]!;
    const isSame = event.stream === submitted.stream && event.record_key === submitted.recordKey &&
      event.kind === submitted.kind && event.occurred_at === submitted.occurredAt &&
      event.content_hash === submitted.contentHash &&
      canonicalize(event.payload) === submitted.payload;
    assert.ok(isSame, `${label} as it was submitted`);
  });
}

function assertReceipt(group: EventGroup, receipt: Receipt | RetirementReceipt): void {
  const first = group[0]!.event_id;
  const last = group.at(-1)!.event_id;
  if ("retirement_event_id" in receipt) {
    assert.deepEqual([receipt.retirement_event_id, receipt.retirement_event_id], [first, last]);
    const payload = group[0]!.payload as Record<string, unknown>;
    assert.equal(payload.final_frontier, receipt.final_frontier);
  } else {
    assert.deepEqual([receipt.first_event_id, receipt.last_event_id], [first, last]);
    assert.equal(receipt.events, group.length);
  }
}
