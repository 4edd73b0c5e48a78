/**
 * Checks events and batches in log order, over segments, pending files and tail as over one log:
 * ids increase, batches have the digests that the log says, and with `chain` every hash and the
 * history chain from genesis on. It remembers one batch, so memory is flat.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { HistoryChain } from "../../event/chain.ts";
import { isEventIdBytes } from "../../event/event_id.ts";
import { sha256Hex } from "../../event/hash.ts";
import type { BatchEntry, Commit } from "../wal/commit_frame.ts";
import { isTextAt, putBytes, takeUuid, UUID_BYTES, uuidText, viewOf } from "../line/line_bytes.ts";
import { BatchDigester, EventHasher } from "../line/line_hashes.ts";
import type { HashedLines, LineHashing } from "./line_hashing.ts";
import type { LineRow } from "../segment/line_row.ts";
import type { SegmentFacts } from "../segment/segment_metadata.ts";
import { SpelledBatch } from "../line/spelled_batch.ts";
import { StoredEvent } from "../line/stored_event.ts";
import { type FailureCode, type FailureDetail, VerifyFailure } from "./verify_failure.ts";

const LF = 0x0a;

export interface HistoryCheckOptions {
  /** Whether to recompute content hashes, event hashes and the chain, which reads all payloads. */
  chain: boolean;
  /** Chain head before the first event, 64 lowercase hex digits; genesis when left out. */
  previousHead?: string;
  /** Recomputes hashes of lines ahead, where `chain` asks for them. */
  hashing?: LineHashing | null;
  /** Told of every batch that is right, in log order. */
  onBatch?: (entry: BatchEntry, path: string) => void;
}

/** What the log says of a batch before its events are known. */
export type BatchIdentity = Pick<BatchEntry, "source" | "batch_id" | "batch_digest">;

/** A batch whose lines are being taken in. */
interface OpenBatch extends BatchIdentity {
  spelling: SpelledBatch;
  events: number;
  firstEventId: string;
}

export class HistoryCheck {
  readonly #options: HistoryCheckOptions;
  readonly #event = new StoredEvent();
  readonly #digester = new BatchDigester();
  readonly #hasher = new EventHasher();
  #chain: HistoryChain;
  #path = "";
  #invalid: FailureCode = "segment_invalid";
  #batch: OpenBatch | null = null;
  /** Id of the last event, if there is one. */
  #lastId = new Uint8Array(UUID_BYTES);
  /** What the next id is decoded to. */
  #spareId = new Uint8Array(UUID_BYTES);
  #events = 0;

  constructor(options: HistoryCheckOptions) {
    this.#options = options;
    this.#chain = new HistoryChain(options.previousHead);
  }

  get eventsChecked(): number {
    return this.#events;
  }

  /** The last event so far. */
  get lastEventId(): string | null {
    return this.#events === 0 ? null : uuidText(this.#lastId);
  }

  /** Whether hashes are recomputed, for which lines must have their payloads. */
  get chain(): boolean {
    return this.#options.chain;
  }

  /** Who is to recompute the hashes of lines before they come; null for this object itself. */
  get hashing(): LineHashing | null {
    return this.#options.chain ? this.#options.hashing ?? null : null;
  }

  /**
   * What comes next is in another file of the log.
   * @param invalid how the report calls a fault in the form of it.
   */
  enterFile(
    path: string,
    invalid: Extract<FailureCode, "segment_invalid" | "pending_invalid" | "tail_invalid">,
  ): void {
    this.#path = path;
    this.#invalid = invalid;
  }

  /**
   * Takes in the next commit; `lines` are all its event lines.
   * @param areHashed whether their hashes are known to be right.
   * @throws {VerifyFailure}
   */
  addCommit({ batches, head }: Commit, { lines, areHashed }: HashedLines): void {
    let at = 0;
    for (const entry of batches) {
      this.startBatch(entry);
      for (let event = 0; event < entry.events; event++) at = this.addLine(lines, at, areHashed);
      this.#compareEntries(entry, this.endBatch());
    }
    if (at < lines.length) throw this.#failure("a commit with more lines than events");
    this.checkHead(head);
  }

  /** Whether a segment that is right by itself is what comes next. */
  isNext({ first_event_id, previous_head }: SegmentFacts): boolean {
    const last = this.lastEventId;
    return (last === null || last < first_event_id) &&
      (!this.#options.chain || previous_head === this.#chain.head);
  }

  /** Takes in a segment that is right by itself, and what comes next. */
  addSegment({ events, last_event_id, head }: SegmentFacts): void {
    takeUuid(Buffer.from(last_event_id), 0, this.#lastId, 0);
    this.#chain = new HistoryChain(head);
    this.#events += events;
  }

  /** The lines that follow are those of a new batch. */
  startBatch({ source, batch_id, batch_digest }: BatchIdentity): void {
    if (this.#batch !== null) throw this.#failure("the batch before has fewer events than it says");
    this.#batch = {
      source,
      batch_id,
      batch_digest,
      spelling: new SpelledBatch({ source, batch_id }),
      events: 0,
      firstEventId: "",
    };
  }

  /**
   * Takes in the line that starts at `start`, up to its LF, of the batch that was started.
   * @returns where the next line starts. @throws {VerifyFailure}
   */
  addLine(lines: Buffer, start: number, areHashed: boolean): number {
    const batch = this.#batch;
    const event = this.#event;
    const end = lines.indexOf(LF, start);
    if (end < 0) throw this.#failure("a commit with fewer lines than events");
    if (!event.take(lines, start, end)) throw this.#failure("a line is no event");
    if (batch === null || !batch.spelling.holds(event)) {
      throw this.#failure("an event of another batch than it stands in", {
        eventId: event.eventId,
      });
    }
    if (!takeUuid(lines, event.eventIdStart, this.#spareId, 0)) {
      throw this.#malformedId(event.eventId);
    }
    this.#checkOrder();
    if (this.#options.chain) {
      if (!areHashed) this.#checkHashes(event);
      this.#chain.append(event.eventHash);
    }
    this.#digester.add(event);
    this.#countEvent();
    return end + 1;
  }

  /** Takes in a row of a segment in place of a line. Its hashes are not looked at. */
  addRow(row: LineRow): void {
    const { bytes, start } = row.members.eventId;
    putBytes(this.#spareId, 0, bytes, start, start + UUID_BYTES);
    this.#checkOrder();
    this.#digester.addRow(row);
    this.#countEvent();
  }

  /** All events of the batch have been taken in. @returns what they are. @throws {VerifyFailure} */
  endBatch(): BatchEntry {
    const batch = this.#batch;
    if (batch === null || batch.events === 0) throw this.#failure("a batch without events");
    const { source, batch_id, batch_digest, events, firstEventId } = batch;
    this.#batch = null;
    const found = this.#digester.finish();
    if (found !== batch_digest) {
      throw this.#failureOf("batch_commitment_mismatch", `the digest of batch ${batch_id}`, {
        eventId: firstEventId,
        expected: batch_digest,
        found,
      });
    }
    const entry = {
      batch_digest,
      batch_id,
      events,
      first_event_id: firstEventId,
      last_event_id: this.lastEventId!,
      source,
    };
    this.#options.onBatch?.(entry, this.#path);
    return entry;
  }

  /**
   * Checks the chain head after all events so far, if the chain is followed. @throws
   * {VerifyFailure}
   */
  checkHead(expected: string): void {
    if (!this.#options.chain || expected === this.#chain.head) return;
    throw this.#failureOf("chain_head_mismatch", "the chain head after it", {
      eventId: this.lastEventId,
      expected,
      found: this.#chain.head,
    });
  }

  #countEvent(): void {
    const batch = this.#batch;
    assert(batch !== null, "an event is of the batch that was started");
    if (batch.events === 0) batch.firstEventId = uuidText(this.#lastId);
    batch.events += 1;
    this.#events += 1;
  }

  /**
   * Checks the id that was put to `#spareId`, and makes it the last one. Compares bytes: a text for
   * each event would cost more than all of this check.
   */
  #checkOrder(): void {
    const id = this.#spareId;
    if (!isEventIdBytes(id)) throw this.#malformedId(uuidText(id));
    if (this.#events > 0 && !isBefore(this.#lastId, id)) {
      const eventId = uuidText(id);
      throw this.#failureOf("order_invalid", `follows event ${this.lastEventId}`, { eventId });
    }
    this.#spareId = this.#lastId;
    this.#lastId = id;
  }

  #malformedId(eventId: string): VerifyFailure {
    return this.#failure("a malformed event id", { eventId });
  }

  #checkHashes(event: StoredEvent): void {
    const { bytes, contentHashStart, eventHashStart } = event;
    const content = sha256Hex(viewOf(bytes, event.payloadStart, event.payloadEnd));
    if (!isTextAt(bytes, contentHashStart, content)) {
      const values = { eventId: event.eventId, expected: event.contentHash, found: content };
      throw this.#failureOf("content_hash_mismatch", "the hash of its payload", values);
    }
    const envelope = this.#hasher.hash(event);
    if (!isTextAt(bytes, eventHashStart, envelope)) {
      const values = { eventId: event.eventId, expected: event.eventHash, found: envelope };
      throw this.#failureOf("event_hash_mismatch", "the hash of its envelope", values);
    }
  }

  #compareEntries(entry: BatchEntry, found: BatchEntry): void {
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

/** Whether an id comes before another: bytes in order of significance. */
function isBefore(a: Uint8Array, b: Uint8Array): boolean {
  for (let at = 0; at < UUID_BYTES; at++) {
    if (a[at] !== b[at]) return a[at]! < b[at]!;
  }
  return false;
}
