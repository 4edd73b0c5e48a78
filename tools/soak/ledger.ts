/**
 * Submitted batches and their outcomes, which determine what the log must contain. For each batch,
 * only its digest, ids, counts and sizes are kept.
 *
 * Memory is bounded because a round ends soon after `isFull` becomes true.
 */
import { Buffer } from "node:buffer";
import { isDeepStrictEqual } from "node:util";
import type { Batch } from "../../src/client/event_log_client.ts";
import { canonicalize } from "../../src/event/json/canonical_json.ts";
import { sha256Hex } from "../../src/event/hash.ts";
import type { CommittedEvent, Receipt, RetirementReceipt } from "../../src/event/types.ts";
import type { Mutation, SubmittedBatch } from "../../tests/support/submitted.ts";
import { ROUND_EVENTS_MAX, ROUND_PAYLOAD_BYTES_MAX } from "./bounds.ts";
import { claim } from "./violation.ts";

/** The members of an event that the batch digest covers. */
type DigestedEvent = Pick<
  CommittedEvent,
  "stream" | "record_key" | "kind" | "content_hash" | "occurred_at"
>;

/** A submitted batch. */
export interface LedgerEntry {
  readonly source: string;
  readonly batchId: string;
  /** The batch, with its digest instead of its events. */
  readonly mutation: Extract<Mutation, { kind: "append" }>;
  readonly events: number;
  /** Total size of the canonical payloads. */
  readonly payloadBytes: number;
  /** The first receipt; null if there is none yet. */
  receipt: Receipt | null;
  /** Whether a receipt had the status `committed`. At most one receipt may have it. */
  isCommitted: boolean;
}

/** Everything acknowledged up to some moment, which the log must contain from then on. */
export interface Due {
  /** Number of acknowledged batches. */
  batches: number;
  retirements: RetirementReceipt[];
}

/** Returns the batch digest of events in order, as documented in the API. */
export function digestOf(source: string, events: readonly DigestedEvent[]): string {
  const digested = events.map(({ stream, record_key, kind, content_hash, occurred_at }) => {
    const event = { stream, record_key, kind, content_hash };
    return occurred_at === undefined ? event : { ...event, occurred_at };
  });
  return sha256Hex(canonicalize({ v: 1, source, events: digested }));
}

export class Ledger {
  readonly #entries = new Map<string, LedgerEntry>();
  /** In the order of their receipts. */
  readonly acknowledged: LedgerEntry[] = [];
  /** Receipts keyed by retired source. */
  readonly #retirements = new Map<string, RetirementReceipt>();
  /**
   * Returns whether a batch that the soak's writers did not submit is allowed. Used by tests in
   * which other clients also write. By default, no such batch is allowed.
   */
  mayHold: (events: readonly CommittedEvent[]) => boolean = () => false;
  /** Called after each receipt. */
  onReceipt: () => void = () => {};
  #events = 0;
  #payloadBytes = 0;

  /** Whether a log with these batches has reached its maximum size. */
  get isFull(): boolean {
    return this.#events >= ROUND_EVENTS_MAX || this.#payloadBytes >= ROUND_PAYLOAD_BYTES_MAX;
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

  /** Must be called before a batch is first sent. Batches that are rejected need not be known. */
  submit({ source, batchId, events, precondition }: Batch): LedgerEntry {
    let payloadBytes = 0;
    const hashed = events.map((event) => {
      const text = canonicalize(event.payload);
      payloadBytes += Buffer.byteLength(text);
      return { ...event, content_hash: sha256Hex(text) };
    });
    const digest = digestOf(source, hashed);
    const batch: SubmittedBatch = { source, batch_id: batchId, events: markerOf(events) };
    if (precondition) {
      const { stream, expectedFrontier } = precondition;
      batch.stream_precondition = { stream, expected_frontier: expectedFrontier };
    }
    const entry: LedgerEntry = {
      source,
      batchId,
      mutation: { kind: "append", batch, digest },
      events: events.length,
      payloadBytes,
      receipt: null,
      isCommitted: false,
    };
    this.#entries.set(`${source} ${batchId}`, entry);
    this.#events += entry.events;
    this.#payloadBytes += payloadBytes;
    return entry;
  }

  /**
   * Records a receipt.
   * @throws {Violation} if the receipt contradicts an earlier one.
   */
  acknowledge(entry: LedgerEntry, receipt: Receipt): void {
    const name = nameOf(entry);
    const isCommitted = receipt.status === "committed";
    claim(!isCommitted || !entry.isCommitted, `${name} was committed twice`);
    entry.isCommitted ||= isCommitted;
    if (entry.receipt === null) {
      entry.receipt = receipt;
      this.acknowledged.push(entry);
    }
    assertSame(name, entry.receipt, receipt);
    this.onReceipt();
  }

  /** Records a retirement. @throws {Violation} if the receipt contradicts an earlier one. */
  retire(receipt: RetirementReceipt): void {
    const { source } = receipt;
    const known = this.#retirements.get(source) ?? receipt;
    assertSame(source, known, receipt);
    this.#retirements.set(source, known);
    this.onReceipt();
  }
}

/** @throws {Violation} if two receipts differ in more than their status. */
function assertSame(name: string, first: object, second: object): void {
  const isSame = isDeepStrictEqual({ ...first, status: "" }, { ...second, status: "" });
  const told = `${JSON.stringify(first)} and ${JSON.stringify(second)}`;
  claim(isSame, `${name} has two receipts: ${told}`);
}

/** Returns the first event, without its payload unless it is a lineage marker. */
export function markerOf([first]: readonly SubmittedBatch["events"][number][]) {
  const { stream, record_key, kind, payload } = first!;
  const isMarker = stream === "service.source_lineage";
  return [{ stream, record_key, kind, payload: isMarker ? payload : null }];
}

/** Returns the name of a batch, for messages. */
export function nameOf({ source, batchId }: { source: string; batchId: string }): string {
  return `batch ${source}/${batchId}`;
}
