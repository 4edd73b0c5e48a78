/**
 * Checks in log order, across segments, pending files and the tail, that ids increase and that
 * batches match their recorded digests. With `chain`, also checks every hash and the history chain
 * from genesis. Uses constant memory. The writer of segments checks with it what it seals.
 */
import type { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { GENESIS_HEAD_HEX, nextHead } from "../../event/chain.ts";
import { isEventId } from "../../event/event_id.ts";
import { isSha256Hex, sha256Hex } from "../../event/hash.ts";
import { nameFault } from "../../event/names.ts";
import { IngestRules } from "../line/ingest_rules.ts";
import { viewOf } from "../line/line_bytes.ts";
import { BatchDigester, hashEnvelope } from "../line/line_hashes.ts";
import { SpelledBatch, StoredEvent } from "../line/stored_event.ts";
import { type FailureCode, VerifyFailure } from "../storage/errors.ts";
import type { BatchEntry, Commit } from "./commit_frame.ts";

export interface HistoryCheckOptions {
  /** Whether to recompute content hashes, event hashes and the chain. */
  chain: boolean;
  /**
   * Chain head before the first event, 64 lowercase hex digits; genesis if absent. If null, the
   * chain starts at the first head recorded in the log.
   */
  previousHead?: string | null;
  /** The event that precedes the first one; undefined at the start of the log. */
  lastEventId?: string;
  /** Called with each valid batch, in log order. */
  onBatch?: (batch: BatchIdentity) => void;
}

/** The location of a failure, and the values that differ. */
interface FailureDetail {
  eventId?: string | null;
  /** The value recorded in the log. */
  expected?: string;
  /** The value computed from the events. */
  found?: string;
}

export type BatchIdentity = Pick<BatchEntry, "source" | "batch_id">;
export type BatchNames = Pick<BatchEntry, "source" | "batch_id" | "batch_digest">;

/** A batch whose lines are being checked. */
interface OpenBatch extends BatchNames {
  spelling: SpelledBatch;
  /** Empty before the first event. */
  firstEventId: string;
}

export class HistoryCheck {
  readonly chain: boolean;
  readonly #onBatch: HistoryCheckOptions["onBatch"];
  /** The last event checked, until the next one is. */
  readonly event: StoredEvent = new StoredEvent();
  readonly #digester = new BatchDigester();
  readonly #rules = new IngestRules();
  /**
   * Chain head after the events so far. Null while it is unknown: without `chain`, from
   * `startBatch()` to `checkHead()`.
   */
  head: string | null;
  #path = "";
  #invalid: FailureCode = "segment_invalid";
  #batch: OpenBatch | null = null;
  /** Whether the chain is followed: without `chain`, to check that a file continues it. */
  #followsChain = true;
  #stream = "";
  /** The first event of the first valid batch; null if there is none. */
  firstEventId: string | null = null;
  /** The last event checked; null if there is none. */
  lastEventId: string | null;
  eventsChecked = 0;

  constructor(options: HistoryCheckOptions) {
    const { chain, previousHead = GENESIS_HEAD_HEX, lastEventId = null, onBatch } = options;
    this.chain = chain;
    this.#onBatch = onBatch;
    this.head = previousHead;
    this.lastEventId = lastEventId;
  }

  /** Starts the next file. @param invalid the failure code if the file is malformed. */
  enterFile(path: string, invalid: FailureCode): void {
    this.#path = path;
    this.#invalid = invalid;
    this.#followsChain = this.chain || invalid !== "segment_invalid";
  }

  /** Checks the next commit, with all its event lines. @throws {VerifyFailure} */
  addCommit(commit: Commit, lines: Buffer): void {
    for (const _ of this.events(commit, lines)) { /* Each is checked before it is yielded. */ }
    this.#followsChain = this.chain;
  }

  /** Checks the next commit, and yields each event's batch and the end of its line. */
  *events({ batches, head }: Commit, lines: Buffer): Generator<[BatchEntry, number], void> {
    let at = 0;
    for (const entry of batches) {
      this.startBatch(entry);
      for (let event = 0; event < entry.events; event++) {
        at = this.addLine(lines, at);
        yield [entry, at];
      }
      const ids = this.endBatch();
      for (const member of ["first_event_id", "last_event_id"] as const) {
        const [expected, found] = [entry[member], ids[member]];
        if (expected === found) continue;
        throw this.failure(`${member} of batch ${entry.batch_id}`, { expected, found });
      }
    }
    if (at < lines.length) throw this.failure("the commit has more lines than events");
    this.checkHead(head);
  }

  startBatch({ source, batch_id, batch_digest }: BatchNames): void {
    assert(this.#batch === null, "a batch must end before the next one starts");
    const spelling = new SpelledBatch({ source, batch_id });
    this.#batch = { source, batch_id, batch_digest, spelling, firstEventId: "" };
    this.#checkName("source", source);
    if (!this.#followsChain) this.head = null;
  }

  /**
   * Checks the line in the current batch that begins at `start`.
   * @returns the start of the next line.
   * @throws {VerifyFailure}
   */
  addLine(lines: Buffer, start: number): number {
    const batch = this.#batch;
    const { event } = this;
    assert(batch !== null, "a line must belong to a batch that has started");
    if (start === lines.length) throw this.failure("the commit has fewer lines than events");
    const end = event.takeLine(lines, start);
    if (end === 0) throw this.failure("a line is not a valid event");
    if (!batch.spelling.holds(event)) {
      throw this.failure("the event belongs to a different batch", { eventId: event.eventId });
    }
    this.#checkId(event);
    if (this.chain) {
      this.#checkHashes(event);
      const fault = this.#rules.faultIn(event, batch.firstEventId === "");
      if (fault !== null) throw this.failure(`no request can have appended this: ${fault}`);
    }
    const { stream } = event;
    if (stream !== this.#stream) this.#checkName("stream", stream);
    this.#stream = stream;
    if (this.head !== null && isSha256Hex(event.eventHash)) {
      this.head = nextHead(this.head, event.eventHash);
    }
    this.#digester.add(event);
    batch.firstEventId ||= event.eventId;
    this.eventsChecked += 1;
    return end;
  }

  /** Ends the current batch. @returns the ids of its events. @throws {VerifyFailure} */
  endBatch(): Pick<BatchEntry, "first_event_id" | "last_event_id"> {
    const batch = this.#batch;
    assert(batch !== null && batch.firstEventId !== "", "a batch must have events");
    this.#batch = null;
    const found = this.#digester.finish();
    if (found !== batch.batch_digest) {
      const values = { eventId: batch.firstEventId, expected: batch.batch_digest, found };
      const what = `digest of batch ${batch.batch_id}`;
      throw this.failure(what, values, "batch_commitment_mismatch");
    }
    this.firstEventId ??= batch.firstEventId;
    this.#onBatch?.(batch);
    return { first_event_id: batch.firstEventId, last_event_id: this.lastEventId! };
  }

  /**
   * Checks the chain head recorded after all events so far. Without `chain`, compares it only with
   * the previously recorded head, and only if no events lie between the two.
   * @throws {VerifyFailure}
   */
  checkHead(expected: string): void {
    const found = this.head ??= expected;
    if (expected === found) return;
    const code = this.chain ? "chain_head_mismatch" : this.#invalid;
    throw this.failure("chain head after this event", { expected, found }, code);
  }

  #checkId({ eventId }: StoredEvent): void {
    if (!isEventId(eventId)) throw this.failure("malformed event id", { eventId });
    const last = this.lastEventId;
    if (last !== null && last >= eventId) {
      throw this.failure(`out of order after ${last}`, { eventId }, "order_invalid");
    }
    this.lastEventId = eventId;
  }

  /** A name may have no character by which a reader would misread its line. */
  #checkName(member: string, name: string): void {
    const fault = nameFault(name);
    if (fault !== null) throw this.failure(`${member}: a name ${fault}`);
  }

  #checkHashes(event: StoredEvent): void {
    const content = sha256Hex(viewOf(event.bytes, event.payloadStart, event.payloadEnd));
    if (event.contentHash !== content) {
      const values = { eventId: event.eventId, expected: event.contentHash, found: content };
      throw this.failure("payload hash", values, "content_hash_mismatch");
    }
    const envelope = hashEnvelope(event);
    if (event.eventHash !== envelope) {
      const values = { eventId: event.eventId, expected: event.eventHash, found: envelope };
      throw this.failure("envelope hash", values, "event_hash_mismatch");
    }
  }

  /** Creates a failure in the current file, at the last event unless `detail` names another. */
  failure(
    what: string,
    { eventId = this.lastEventId, expected, found }: FailureDetail = {},
    code: FailureCode = this.#invalid,
  ): VerifyFailure {
    const event = eventId ? `, event ${eventId}` : "";
    const values = expected === undefined ? "" : `: expected ${expected}, found ${found}`;
    return new VerifyFailure(code, `${this.#path}${event}: ${what}${values}`);
  }
}
