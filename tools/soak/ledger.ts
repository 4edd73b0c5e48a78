/**
 * Submitted batches and their outcomes, which determine what the log must contain. For each batch,
 * only its digest, ids, counts and sizes are kept.
 *
 * Memory is bounded because a round ends soon after `isFull` becomes true.
 */
import { Buffer } from "node:buffer";
import type { Batch } from "../../src/client/event_log_client.ts";
import { canonicalize } from "../../src/event/json/canonical_json.ts";
import { sha256Hex } from "../../src/event/hash.ts";
import type { CommittedEvent, Receipt, RetirementReceipt } from "../../src/event/types.ts";
import { ROUND_BATCHES_MAX, ROUND_EVENTS_MAX, ROUND_PAYLOAD_BYTES_MAX } from "./bounds.ts";
import { claim } from "./violation.ts";

/** The members of an event that the batch digest covers. */
export interface DigestedEvent {
  stream: string;
  record_key: string;
  kind: string;
  content_hash: string;
  occurred_at?: string;
}

/** A submitted batch. */
export interface LedgerEntry {
  readonly source: string;
  readonly batchId: string;
  /** The digest that the receipt and the events in the log must match. */
  readonly digest: string;
  readonly events: number;
  /** Total size of the canonical payloads. */
  readonly payloadBytes: number;
  /** The ids in the receipt; null if there is none yet. */
  receipt: { firstEventId: string; lastEventId: string } | null;
  /** Whether a receipt had the status `committed`. At most one receipt may have it. */
  isCommitted: boolean;
  /** Whether the service rejected the batch. The log must then contain none of it. */
  isRefused: boolean;
}

/** Everything acknowledged up to some moment, which the log must contain from then on. */
export interface Due {
  /** Number of acknowledged batches. */
  batches: number;
  retirements: RetirementReceipt[];
}

/** Returns the batch digest of events in order, as documented in the API. */
export function digestOf(source: string, events: readonly DigestedEvent[]): string {
  return sha256Hex(canonicalize({ v: 1, source, events }));
}

export class Ledger {
  readonly #entries = new Map<string, LedgerEntry>();
  /** In the order of their receipts. */
  readonly acknowledged: LedgerEntry[] = [];
  /** Receipts keyed by retired source. */
  readonly #retirements = new Map<string, RetirementReceipt>();
  readonly #batchesMax: number;
  /**
   * Returns whether a batch that the soak's writers did not submit is allowed. Used by tests in
   * which other clients also write. By default, no such batch is allowed.
   */
  mayHold: (events: readonly CommittedEvent[]) => boolean = () => false;
  #events = 0;
  #payloadBytes = 0;

  /** @param batchesMax maximum number of batches in one log. */
  constructor(batchesMax: number = ROUND_BATCHES_MAX) {
    this.#batchesMax = batchesMax;
  }

  /** Whether a log with these batches has reached its maximum size. */
  get isFull(): boolean {
    return this.#entries.size >= this.#batchesMax || this.#events >= ROUND_EVENTS_MAX ||
      this.#payloadBytes >= ROUND_PAYLOAD_BYTES_MAX;
  }

  /** Returns a copy of the current acknowledgements. */
  due(): Due {
    const batches = this.acknowledged.length;
    return { batches, retirements: [...this.#retirements.values()] };
  }

  /** Returns the batch with this source and id; undefined if no writer submitted it. */
  find(source: string, batchId: string): LedgerEntry | undefined {
    return this.#entries.get(`${source} ${batchId}`);
  }

  /** Must be called before a batch is first sent. */
  submit({ source, batchId, events }: Batch): LedgerEntry {
    let payloadBytes = 0;
    const digested = events.map(({ payload, ...event }) => {
      const text = canonicalize(payload);
      payloadBytes += Buffer.byteLength(text);
      return { ...event, content_hash: sha256Hex(text) };
    });
    const digest = digestOf(source, digested);
    const entry: LedgerEntry = {
      source,
      batchId,
      digest,
      events: events.length,
      payloadBytes,
      receipt: null,
      isCommitted: false,
      isRefused: false,
    };
    this.#entries.set(`${source} ${batchId}`, entry);
    this.#events += entry.events;
    this.#payloadBytes += payloadBytes;
    return entry;
  }

  /**
   * Records a receipt.
   * @throws {Violation} if the receipt contradicts the batch or an earlier receipt.
   */
  acknowledge(entry: LedgerEntry, receipt: Receipt): void {
    const { status, batch_digest, events, first_event_id, last_event_id } = receipt;
    const name = nameOf(entry);
    claim(batch_digest === entry.digest, `${name} was acknowledged with a different digest`);
    claim(events === entry.events, `${name} was acknowledged with ${events} events`);
    claim(!entry.isRefused, `${name} was rejected, then acknowledged`);
    claim(first_event_id <= last_event_id, `${name} was acknowledged with ids out of order`);
    if (status === "committed") {
      claim(!entry.isCommitted, `${name} was committed twice`);
      entry.isCommitted = true;
    }
    if (entry.receipt === null) {
      entry.receipt = { firstEventId: first_event_id, lastEventId: last_event_id };
      this.acknowledged.push(entry);
      return;
    }
    const { firstEventId, lastEventId } = entry.receipt;
    const isSame = firstEventId === first_event_id && lastEventId === last_event_id;
    claim(isSame, `${name} has two receipts: ${firstEventId} and ${first_event_id}`);
  }

  /** Records that a batch was rejected. */
  refuse(entry: LedgerEntry): void {
    claim(entry.receipt === null, `${nameOf(entry)} was acknowledged, then rejected`);
    entry.isRefused = true;
  }

  /** Records a retirement. @throws {Violation} if the receipt contradicts an earlier one. */
  retire(receipt: RetirementReceipt): void {
    const { source, final_frontier, retirement_event_id } = receipt;
    const known = this.#retirements.get(source) ?? receipt;
    const isSame = known.final_frontier === final_frontier &&
      known.retirement_event_id === retirement_event_id;
    claim(isSame, `${source} was retired twice`);
    this.#retirements.set(source, known);
  }
}

/** Returns the name of a batch, for messages. */
export function nameOf({ source, batchId }: { source: string; batchId: string }): string {
  return `batch ${source}/${batchId}`;
}
