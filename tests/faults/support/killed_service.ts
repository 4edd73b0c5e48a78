/** What the tests that kill the real service ask of it, and hold to what it has promised. */
import assert from "node:assert/strict";
import type { Receipt } from "../../../src/event/types.ts";
import type { Serving } from "../../../tools/support/program.ts";
import type { SubmittedBatch } from "../../support/submitted.ts";
import type { KillHistory } from "./kill_history.ts";

const PAGE_EVENTS = 5000;

/** Submits a batch; null when the connection is lost before the answer. */
export async function submit(
  { fetch }: Serving,
  batch: SubmittedBatch,
): Promise<Receipt | null> {
  let status: number;
  let body: unknown;
  try {
    const response = await fetch("/v1/events", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(batch),
    });
    status = response.status;
    body = await response.json();
  } catch {
    return null;
  }
  // A shutdown under way takes no more.
  if (status === 503) return null;
  assert.equal(status, 200, JSON.stringify(body));
  return body as Receipt;
}

/** Reads on from where the last reading ended, and holds what is there to what was promised. */
export async function readOn(history: KillHistory, { fetch }: Serving): Promise<void> {
  for (let after = history.lastEventId;;) {
    const query = after === null ? "" : `&after=${after}`;
    const response = await fetch(`/v1/events?limit=${PAGE_EVENTS}${query}`);
    const page = await response.json();
    history.read(page.events);
    if (page.next_after === page.snapshot_through_event_id) break;
    after = page.next_after;
  }
  history.endReading();
  assert.deepEqual(history.broken, { lost: [], half: [], foreign: [], disordered: [] });
}

/**
 * Submits again what got no answer.
 * @param onRetried told of each batch whether it was there, whole.
 */
export async function retryUnanswered(
  history: KillHistory,
  serving: Serving,
  onRetried: (isCommitted: boolean) => void = () => {},
): Promise<void> {
  for (const batch of history.unanswered) {
    const receipt = await submit(serving, batch);
    assert.ok(receipt !== null);
    const isCommitted = history.isCommitted(batch);
    assert.equal(receipt.status, isCommitted ? "duplicate" : "committed");
    history.acknowledge(batch, receipt);
    onRetried(isCommitted);
  }
}
