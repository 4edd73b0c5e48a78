/**
 * What the clients were told, against what is in the log: every acknowledged batch once and whole,
 * with what its receipt says, and no batch that nobody sent.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { canonicalize } from "../../../src/event/json/canonical_json.ts";
import type { CommittedEvent, Receipt, RetirementReceipt } from "../../../src/event/types.ts";
import { verifyEvent } from "../../../src/event/verify_event.ts";
import { batchKey, contentOf, type SentRequests } from "./fuzz_sent.ts";

const RETIREMENTS = "service.source_lifecycle";

export class AcknowledgedReceipts {
  /** By the id of the batch's first event. */
  readonly #receipts = new Map<string, Receipt>();
  readonly #committed = new Set<string>();
  /** Events that record retirements, by their retired source. */
  readonly #retirements = new Map<string, string>();

  /**
   * Takes in a receipt.
   * @param lastId of the batch that was committed before on the same connection.
   */
  add(receipt: Receipt, lastId: string): void {
    const { status, first_event_id, last_event_id } = receipt;
    assert.ok(status === "committed" || status === "duplicate", status);
    assert.ok(first_event_id <= last_event_id, "ids increase in a batch");
    if (status === "committed") {
      assert.ok(first_event_id > lastId, "ids increase from receipt to receipt of a connection");
      assert.ok(!this.#committed.has(first_event_id), "a batch is committed once");
      this.#committed.add(first_event_id);
    }
    const known = this.#receipts.get(first_event_id) ?? receipt;
    assert.deepEqual({ ...receipt, status }, { ...known, status }, "a batch has one receipt");
    this.#receipts.set(first_event_id, receipt);
  }

  addRetirement({ source, retirement_event_id }: RetirementReceipt): void {
    const known = this.#retirements.get(source) ?? retirement_event_id;
    assert.equal(retirement_event_id, known, "a source is retired once");
    this.#retirements.set(source, retirement_event_id);
  }

  get size(): number {
    return this.#receipts.size;
  }

  /** Checks all events of the log, in its order. */
  async check(events: readonly CommittedEvent[], sent: SentRequests): Promise<void> {
    const batches = batchesOf(events);
    const lastIds = new Map<string, string>();
    const retired = new Map<string, string>();
    for (const [first_event_id, batch] of batches) {
      const { source, record_key, batch_id } = batch[0]!;
      const name = batchKey(source, batch_id);
      assert.ok(!retired.has(source), `${name} came before the retirement`);
      if (source === "system") {
        assertRetirement(batch, sent, lastIds);
        retired.set(record_key, first_event_id);
      } else {
        assert.ok(sent.hasBatch(name, contentOf(batch)), `${name} was sent`);
      }
      const receipt = this.#receipts.get(first_event_id);
      if (receipt !== undefined) {
        assert.equal(receipt.last_event_id, batch.at(-1)!.event_id, name);
        assert.equal(receipt.events, batch.length, name);
        assert.equal(receipt.batch_digest, digestOf(source, batch), name);
      }
      lastIds.set(source, batch.at(-1)!.event_id);
    }
    for (const id of this.#receipts.keys()) assert.ok(batches.has(id), `${id} was acknowledged`);
    for (const [source, id] of this.#retirements) assert.equal(retired.get(source), id);
    for (const event of events) {
      assert.deepEqual(await verifyEvent(event), { contentHash: true, eventHash: true });
    }
  }
}

/** The batches of a log by their first id. A batch must be one run of events, and there once. */
function batchesOf(events: readonly CommittedEvent[]): Map<string, CommittedEvent[]> {
  const batches = new Map<string, CommittedEvent[]>();
  const keys = new Set<string>();
  let openKey = "";
  let openBatch: CommittedEvent[] = [];
  let lastId = "";
  for (const event of events) {
    assert.ok(event.event_id > lastId, "ids increase");
    lastId = event.event_id;
    const key = batchKey(event.source, event.batch_id);
    if (openKey === key) {
      openBatch.push(event);
      assert.equal(event.observed_at, openBatch[0]!.observed_at);
      continue;
    }
    assert.ok(!keys.has(key), `${key} is there once`);
    keys.add(key);
    openKey = key;
    openBatch = [event];
    batches.set(event.event_id, openBatch);
  }
  return batches;
}

/** A retirement that was asked for, of a source that had events. */
function assertRetirement(
  batch: readonly CommittedEvent[],
  sent: SentRequests,
  lastIds: ReadonlyMap<string, string>,
): void {
  const { stream, record_key, payload } = batch[0]!;
  assert.equal(batch.length, 1);
  assert.equal(stream, RETIREMENTS);
  assert.ok(sent.hasRetirement(record_key), `retirement of ${record_key} was asked for`);
  const final_frontier = lastIds.get(record_key);
  assert.deepEqual(payload, { v: 1, source: record_key, final_frontier });
}

/** The digest of a batch as the contract has it, made from what the log returns. */
function digestOf(source: string, batch: readonly CommittedEvent[]): string {
  const events = batch.map(({ stream, record_key, kind, content_hash, occurred_at }) => ({
    stream,
    record_key,
    kind,
    content_hash,
    ...(occurred_at !== undefined && { occurred_at }),
  }));
  return createHash("sha256").update(canonicalize({ v: 1, source, events })).digest("hex");
}
