/**
 * Checks events and batches in log order, across segments, pending files and tail: ids increase,
 * batches match their recorded digests, and with `chain` every hash and the history chain from
 * genesis. It holds one batch, so memory is constant.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { GENESIS_HEAD_HEX, HistoryChain } from "../../event/chain.ts";
import { isEventIdBytes } from "../../event/event_id.ts";
import { sha256Hex } from "../../event/hash.ts";
import { takeUuid, UUID_BYTES, uuidText, viewOf } from "../line/line_bytes.ts";
import { BatchDigester, EventHasher } from "../line/line_hashes.ts";
import { SpelledBatch, StoredEvent } from "../line/stored_event.ts";
import type { SegmentFacts } from "../segment/segment_metadata.ts";
import type { BatchEntry, Commit } from "../wal/commit_frame.ts";
import { type FailureCode, type FailureDetail, VerifyFailure } from "./failure.ts";

const LF = 0x0a;

export interface HistoryCheckOptions {
  /** Whether to recompute content hashes, event hashes and the chain. */
  chain: boolean;
  /**
   * Chain head before the first event, 64 lowercase hex digits; genesis if absent. When null, the
   * chain is followed from the first head recorded in the log.
   */
  previousHead?: string | null;
  /** Called with each right batch, in log order. */
  onBatch?: (batch: BatchIdentity) => void;
}

/** Identifies a batch. */
export type BatchIdentity = Pick<BatchEntry, "source" | "batch_id">;

/** The record of a batch before its events are read. */
export type BatchStart = Pick<BatchEntry, "source" | "batch_id" | "batch_digest">;

/** A batch whose lines are being checked. */
interface OpenBatch extends BatchStart {
  spelling: SpelledBatch;
  events: number;
  firstEventId: string;
}

export class HistoryCheck {
  /** Whether hashes and the chain are recomputed. */
  readonly chain: boolean;
  readonly #onBatch: HistoryCheckOptions["onBatch"];
  readonly #event = new StoredEvent();
  readonly #digester = new BatchDigester();
  readonly #hasher = new EventHasher();
  /** Null while the head is unknown. */
  #history: HistoryChain | null;
  #path = "";
  #invalid: FailureCode = "segment_invalid";
  #batch: OpenBatch | null = null;
  /** Id of the last event, if there is one. */
  #lastId = new Uint8Array(UUID_BYTES);
  /** Buffer for the next id. */
  #nextId = new Uint8Array(UUID_BYTES);
  /** Events so far. */
  eventsChecked = 0;

  constructor({ chain, previousHead = GENESIS_HEAD_HEX, onBatch }: HistoryCheckOptions) {
    this.chain = chain;
    this.#onBatch = onBatch;
    this.#history = previousHead === null ? null : new HistoryChain(previousHead);
  }

  /** The last event so far. */
  get lastEventId(): string | null {
    return this.eventsChecked === 0 ? null : uuidText(this.#lastId);
  }

  /** Starts the next file. @param invalid the failure code if it is malformed. */
  enterFile(
    path: string,
    invalid: Extract<FailureCode, "segment_invalid" | "pending_invalid" | "tail_invalid">,
  ): void {
    this.#path = path;
    this.#invalid = invalid;
  }

  /** Checks the next commit; `lines` are all its event lines. @throws {VerifyFailure} */
  addCommit({ batches, head }: Commit, lines: Buffer): void {
    let at = 0;
    for (const entry of batches) {
      this.startBatch(entry);
      for (let event = 0; event < entry.events; event++) at = this.addLine(lines, at);
      const { firstEventId } = this.#batch!;
      this.endBatch();
      this.#compareIds(entry, { first_event_id: firstEventId, last_event_id: this.lastEventId! });
    }
    if (at < lines.length) throw this.#failure("a commit with more lines than events");
    this.checkHead(head);
  }

  /** Whether a segment that is right by itself comes next. */
  isNext({ first_event_id, previous_head }: SegmentFacts): boolean {
    const last = this.lastEventId;
    return (last === null || last < first_event_id) &&
      (!this.chain || previous_head === this.#history?.head);
  }

  /** Adds a segment that is right by itself and comes next. */
  addSegment({ events, last_event_id, head }: SegmentFacts): void {
    takeUuid(Buffer.from(last_event_id), 0, this.#lastId, 0);
    this.#history = new HistoryChain(head);
    this.eventsChecked += events;
  }

  /** Starts a batch, to which the following lines belong. */
  startBatch({ source, batch_id, batch_digest }: BatchStart): void {
    assert(this.#batch === null, "a batch ends before the next one starts");
    const spelling = new SpelledBatch({ source, batch_id });
    this.#batch = { source, batch_id, batch_digest, spelling, events: 0, firstEventId: "" };
  }

  /**
   * Checks the line of the current batch that begins at `start`.
   * @returns the start of the next line.
   * @throws {VerifyFailure}
   */
  addLine(lines: Buffer, start: number): number {
    const batch = this.#batch;
    const event = this.#event;
    assert(batch !== null, "a line is of the batch that was started");
    const end = lines.indexOf(LF, start);
    if (end < 0) throw this.#failure("a commit with fewer lines than events");
    if (!event.take(lines, start, end)) throw this.#failure("a line is no event");
    if (!batch.spelling.holds(event)) {
      throw this.#failure("an event of another batch than it stands in", {
        eventId: event.eventId,
      });
    }
    this.#checkId(event);
    if (this.chain) {
      this.#checkHashes(event);
      this.#history?.append(event.eventHash);
    }
    this.#digester.add(event);
    if (batch.events === 0) batch.firstEventId = event.eventId;
    batch.events += 1;
    this.eventsChecked += 1;
    return end + 1;
  }

  /** Ends the current batch. @throws {VerifyFailure} */
  endBatch(): void {
    const batch = this.#batch;
    assert(batch !== null && batch.events > 0, "a batch has events");
    this.#batch = null;
    const found = this.#digester.finish();
    if (found !== batch.batch_digest) {
      throw this.#failureOf("batch_commitment_mismatch", `the digest of batch ${batch.batch_id}`, {
        eventId: batch.firstEventId,
        expected: batch.batch_digest,
        found,
      });
    }
    this.#onBatch?.(batch);
  }

  /** Checks the chain head after all events so far, with `chain`. @throws {VerifyFailure} */
  checkHead(expected: string): void {
    if (!this.chain) return;
    this.#history ??= new HistoryChain(expected);
    const found = this.#history.head;
    if (expected === found) return;
    throw this.#failureOf("chain_head_mismatch", "the chain head after it", {
      eventId: this.lastEventId,
      expected,
      found,
    });
  }

  /** Checks that the id of an event follows the last one. Bytes are cheaper than strings here. */
  #checkId(event: StoredEvent): void {
    const id = this.#nextId;
    if (!takeUuid(event.bytes, event.eventIdStart, id, 0) || !isEventIdBytes(id)) {
      throw this.#failure("a malformed event id", { eventId: event.eventId });
    }
    if (this.eventsChecked > 0 && !isBefore(this.#lastId, id)) {
      const { eventId } = event;
      throw this.#failureOf("order_invalid", `follows event ${this.lastEventId}`, { eventId });
    }
    this.#nextId = this.#lastId;
    this.#lastId = id;
  }

  #checkHashes(event: StoredEvent): void {
    const content = sha256Hex(viewOf(event.bytes, event.payloadStart, event.payloadEnd));
    if (event.contentHash !== content) {
      const values = { eventId: event.eventId, expected: event.contentHash, found: content };
      throw this.#failureOf("content_hash_mismatch", "the hash of its payload", values);
    }
    const envelope = this.#hasher.hash(event);
    if (event.eventHash !== envelope) {
      const values = { eventId: event.eventId, expected: event.eventHash, found: envelope };
      throw this.#failureOf("event_hash_mismatch", "the hash of its envelope", values);
    }
  }

  #compareIds(
    entry: BatchEntry,
    found: Pick<BatchEntry, "first_event_id" | "last_event_id">,
  ): void {
    for (const member of ["first_event_id", "last_event_id"] as const) {
      if (entry[member] === found[member]) continue;
      throw this.#failure(`the ${member} of batch ${entry.batch_id}`, {
        expected: entry[member],
        found: found[member],
      });
    }
  }

  #failure(what: string, detail: Partial<FailureDetail> = {}): VerifyFailure {
    return this.#failureOf(this.#invalid, what, { eventId: this.lastEventId, ...detail });
  }

  #failureOf(code: FailureCode, what: string, detail: Partial<FailureDetail>): VerifyFailure {
    return new VerifyFailure(code, what, { path: this.#path, ...detail });
  }
}

/** Whether an id comes before another; bytes are in order of significance. */
function isBefore(a: Uint8Array, b: Uint8Array): boolean {
  for (let at = 0; at < UUID_BYTES; at++) {
    if (a[at] !== b[at]) return a[at]! < b[at]!;
  }
  return false;
}
