/**
 * What clients of a service that is killed again and again know of it, and what they read back. Of
 * a batch it keeps a digest, so that long runs cost little memory. Whatever must not be is counted.
 */
import { hash } from "node:crypto";
import type { Receipt } from "../../../src/event/types.ts";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import type { SubmittedBatch, SubmittedEvent } from "../../support/submitted.ts";

interface Submission {
  batch: SubmittedBatch | null;
  sha256: string;
  receipt: Receipt | null;
}

/** Of a batch as it was read: so much of it as lies in one piece. */
interface Committed {
  events: SubmittedEvent[];
  firstEventId: string;
  lastEventId: string;
}

/** What breaks the promise of the service; all must stay empty. Batches by source and batch id. */
export interface Broken {
  /** Acknowledged and not there, or there with other ids. */
  lost: string[];
  /** There, but not as submitted: a part of it, another content, or in pieces. */
  half: string[];
  /** There twice, or never submitted. */
  foreign: string[];
  /** Event ids that are not greater than the one before. */
  disordered: string[];
}

export class KillHistory {
  readonly broken: Broken = { lost: [], half: [], foreign: [], disordered: [] };
  readonly #submissions = new Map<string, Submission>();
  /** Ids of the first and last event of what has been read back whole. */
  readonly #committed = new Map<string, [first: string, last: string]>();
  #reading: Committed & { key: string } | null = null;
  #lastEventId: string | null = null;

  get submitted(): number {
    return this.#submissions.size;
  }

  get committed(): number {
    return this.#committed.size;
  }

  get acknowledged(): number {
    return [...this.#submissions.values()].filter(({ receipt }) => receipt !== null).length;
  }

  /** Of all that has been read. */
  get lastEventId(): string | null {
    return this.#lastEventId;
  }

  /** Batches that were sent and not answered. */
  get unanswered(): SubmittedBatch[] {
    return [...this.#submissions.values()].flatMap(({ batch }) => batch ?? []);
  }

  isCommitted(batch: SubmittedBatch): boolean {
    return this.#committed.has(keyOf(batch));
  }

  /** Takes down that a batch is being sent. */
  submit(batch: SubmittedBatch): void {
    const sha256 = digestOf(batch.events);
    this.#submissions.set(keyOf(batch), { batch, sha256, receipt: null });
  }

  acknowledge(batch: SubmittedBatch, receipt: Receipt): void {
    const submission = this.#submissions.get(keyOf(batch))!;
    submission.receipt = receipt;
    submission.batch = null;
  }

  /** Forgets what has been read, to read the whole log again. */
  rewind(): void {
    this.#committed.clear();
    this.#lastEventId = null;
  }

  /** Takes in a page of events, which goes on where the last one ended. */
  read(events: readonly CommittedEvent[]): void {
    for (const event of events) {
      const { event_id: id } = event;
      if (this.#lastEventId !== null && id <= this.#lastEventId) this.broken.disordered.push(id);
      this.#lastEventId = id;
      if (this.#reading?.key !== keyOf(event)) this.#begin(event);
      const { stream, record_key, kind, payload } = event;
      this.#reading!.events.push({ stream, record_key, kind, payload });
      this.#reading!.lastEventId = id;
    }
  }

  /** Ends the reading at the frontier: whatever was acknowledged by now must have been there. */
  endReading(): void {
    this.#endBatch();
    for (const [key, { receipt }] of this.#submissions) {
      if (receipt === null) continue;
      const [first, last] = this.#committed.get(key) ?? [];
      if (first !== receipt.first_event_id || last !== receipt.last_event_id) {
        this.broken.lost.push(key);
      }
    }
  }

  #begin(event: CommittedEvent): void {
    this.#endBatch();
    const { event_id: id } = event;
    this.#reading = { key: keyOf(event), events: [], firstEventId: id, lastEventId: id };
  }

  #endBatch(): void {
    if (this.#reading === null) return;
    const { key, events, firstEventId, lastEventId } = this.#reading;
    this.#reading = null;
    const submission = this.#submissions.get(key);
    if (submission === undefined || this.#committed.has(key)) this.broken.foreign.push(key);
    else if (submission.sha256 !== digestOf(events)) this.broken.half.push(key);
    else this.#committed.set(key, [firstEventId, lastEventId]);
  }
}

function keyOf({ source, batch_id }: { source: string; batch_id: string }): string {
  return `${source} ${batch_id}`;
}

/** Payloads have their members in canonical order, so the same events give the same text. */
function digestOf(events: readonly SubmittedEvent[]): string {
  const members = events.map(({ stream, record_key, kind, payload }) => [
    stream,
    record_key,
    kind,
    payload,
  ]);
  return hash("sha256", JSON.stringify(members), "hex");
}
