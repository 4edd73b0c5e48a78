/**
 * What the spoiled requests left in the log: each batch was sent by somebody, and each receipt
 * names one that is there. All else is for the audit of the soak to say, which reads the same log.
 */
import assert from "node:assert/strict";
import type { CommittedEvent, Receipt } from "../../../src/event/types.ts";
import { digestOf } from "../../../tools/soak/ledger.ts";
import { batchKey, contentOf, type SentRequests } from "./fuzz_sent.ts";

type Facts = Pick<Receipt, "last_event_id" | "events" | "batch_digest">;

export class SpoiledBatches {
  readonly #sent: SentRequests;
  /** By the id of the batch's first event: what receipts say, and what the log holds. */
  readonly #told = new Map<string, Facts>();
  readonly #held = new Map<string, Facts>();

  constructor(sent: SentRequests) {
    this.#sent = sent;
  }

  /** Takes in a receipt. @param lastId of the batch committed before on the same connection. */
  acknowledge(receipt: Receipt, lastId: string): void {
    const { status, first_event_id, last_event_id, events, batch_digest } = receipt;
    assert.ok(first_event_id <= last_event_id, "ids increase in a batch");
    const known = this.#told.get(first_event_id);
    const facts = { last_event_id, events, batch_digest };
    assert.deepEqual(known ?? facts, facts, "a batch has one receipt");
    if (status === "committed") {
      assert.ok(first_event_id > lastId, "ids increase from receipt to receipt of a connection");
    }
    this.#told.set(first_event_id, facts);
  }

  /** Takes in a batch of the log. @returns whether somebody has sent it. */
  hold(batch: readonly CommittedEvent[]): boolean {
    const { source, batch_id, event_id } = batch[0]!;
    const digested = batch.map(({ stream, record_key, kind, content_hash, occurred_at }) => {
      const event = { stream, record_key, kind, content_hash };
      return occurred_at === undefined ? event : { ...event, occurred_at };
    });
    this.#held.set(event_id, {
      last_event_id: batch.at(-1)!.event_id,
      events: batch.length,
      batch_digest: digestOf(source, digested),
    });
    return this.#sent.hasBatch(batchKey(source, batch_id), contentOf(batch));
  }

  /** Each receipt names a batch of the log, with its ids, count and digest. */
  assertAllHeld(): void {
    for (const [firstEventId, facts] of this.#told) {
      assert.deepEqual(this.#held.get(firstEventId), facts, firstEventId);
    }
  }
}
