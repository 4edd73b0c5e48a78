/**
 * Whether a history fits some order of its calls: one that keeps to who was answered before whom
 * asked, and in which the sequential model gives every answer that was given. The log tells the
 * order of what was committed, so only the other calls have to be placed between those, each as
 * early as can be.
 */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { type Call, type History, isBatchOf, type LoggedBatch, loggedBatches } from "./history.ts";
import type { Outcome } from "./outcome.ts";
import { SequentialModel } from "./sequential_model.ts";

/** A call without a certain outcome; one that is not in the log may have done nothing. */
const UNCERTAIN = new Set(["writer_poisoned"]);
/** A call that did nothing for a reason that the model knows nothing of. */
const WITHOUT_EFFECT = new Set(["storage_full"]);

/** The call behind a batch of the log, and between which times it was committed. */
interface Committer {
  call: Call;
  invokedAt: number;
  answeredAt: number;
}

/** @returns the model at the end. @throws {AssertionError} the history fits no order. */
export function checkHistory(
  { calls, events }: Pick<History, "calls" | "events">,
): SequentialModel {
  const batches = loggedBatches(events);
  const { committers, models } = findCommitters(calls, batches);
  for (const call of calls.filter(claimsCommit)) {
    const isCommitted = committers.some((committer) => committer.call === call);
    assert.ok(isCommitted, `not in the log: ${describe(call)}`);
  }
  const others = calls.filter((call) => isDecided(call) && !claimsCommit(call));
  placeOthers(others, committers, models);
  return models.at(-1)!;
}

/** The call that committed each batch, and the model before and after each. */
function findCommitters(calls: readonly Call[], batches: readonly LoggedBatch[]) {
  const committers: Committer[] = [];
  const models = [new SequentialModel()];
  let latestInvokedAt = -1;
  for (const batch of batches) {
    const before = models.at(-1)!;
    const candidates = calls.filter((call) =>
      couldCommit(call) && isBatchOf(call.mutation, batch) && call.answeredAt > latestInvokedAt &&
      before.answer(call.mutation) === null
    );
    const committer = chooseCommitter(candidates, batch);
    assert.ok(committer, `no call could commit ${batch.source} ${batch.batchId} at that place`);
    const after = before.copy();
    const answer = after.commit(committer.call.mutation, batch);
    if (claimsCommit(committer.call)) assert.deepEqual(committer.call.outcome, answer);
    committers.push(committer);
    models.push(after);
    latestInvokedAt = Math.max(latestInvokedAt, committer.invokedAt);
  }
  return { committers, models };
}

/** The one that was told so; else any of those without an answer, at any of their times. */
function chooseCommitter(candidates: readonly Call[], { events }: LoggedBatch): Committer | null {
  const told = candidates.find(({ outcome }) => {
    const { first_event_id, retirement_event_id } = outcome?.body ?? {};
    return [first_event_id, retirement_event_id].includes(events[0]!.event_id);
  });
  const possible = told === undefined ? candidates.filter((call) => !claimsCommit(call)) : [told];
  if (possible.length === 0) return null;
  return {
    call: possible[0]!,
    invokedAt: Math.min(...possible.map((call) => call.invokedAt)),
    answeredAt: Math.max(...possible.map((call) => call.answeredAt)),
  };
}

/** Finds a place for each call that committed nothing. */
function placeOthers(
  others: readonly Call[],
  committers: readonly Committer[],
  models: readonly SequentialModel[],
): void {
  const placed: { call: Call; place: number }[] = [];
  for (const call of others.toSorted((a, b) => a.invokedAt - b.invokedAt)) {
    // Behind all that was answered before it was asked for, before all that was asked for later.
    const after = committers.findLastIndex((other) => other.answeredAt < call.invokedAt) + 1;
    const end = committers.findIndex((other) => other.invokedAt > call.answeredAt);
    let place = after;
    for (const other of placed) {
      if (other.call.answeredAt < call.invokedAt) place = Math.max(place, other.place);
    }
    const start = place;
    const last = end < 0 ? committers.length : end;
    while (place <= last && !answers(models[place]!, call)) place += 1;
    assert.ok(
      place <= last,
      `${describe(call)}\nfits nowhere; the model answers\n` +
        models.slice(start, last + 1).map((model) => JSON.stringify(model.answer(call.mutation)))
          .join("\n"),
    );
    placed.push({ call, place });
  }
}

function answers(model: SequentialModel, { mutation, outcome }: Call): boolean {
  return isDeepStrictEqual(model.answer(mutation), outcome);
}

function couldCommit(call: Call): boolean {
  return !isDecided(call) && !WITHOUT_EFFECT.has(codeOf(call.outcome)) || claimsCommit(call);
}

function claimsCommit({ outcome }: Call): boolean {
  return outcome?.body.status === "committed" || outcome?.body.status === "retired";
}

/** Whether the answer says what the log made of a call. */
function isDecided({ outcome }: Call): boolean {
  const code = codeOf(outcome);
  return outcome !== null && !UNCERTAIN.has(code) && !WITHOUT_EFFECT.has(code);
}

function codeOf(outcome: Outcome | null): string {
  return String(outcome?.body.error);
}

function describe({ mutation, outcome }: Call): string {
  return `${JSON.stringify(mutation)}\nanswered ${JSON.stringify(outcome)}`;
}
