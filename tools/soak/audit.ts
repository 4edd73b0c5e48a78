/**
 * Checks the log against the ledger. Every acknowledged batch exists once, complete, with the ids
 * in its receipt. Every other batch is absent or complete, and the log contains nothing else. Each
 * event is rehashed, and the history chain is recomputed from genesis.
 *
 * Audits are incremental. During a soak, one audit follows the log. At the end, a second one reads
 * the whole log again.
 */
import { canonicalize } from "../../src/event/json/canonical_json.ts";
import { HistoryChain } from "../../src/event/chain.ts";
import { sha256Hex } from "../../src/event/hash.ts";
import type { EventLogClient } from "../../src/client/event_log_client.ts";
import type { CommittedEvent } from "../../src/event/types.ts";
import { History } from "./history.ts";
import { digestOf, type Due, type Ledger, type LedgerEntry, nameOf } from "./ledger.ts";
import { claim } from "./violation.ts";

const PAGE_EVENTS = 2000;

/** Known or computed chain heads, keyed by the event that each head follows. */
export type KnownHeads = Map<string, string>;

/** The part of a client that an audit needs. */
export type Pages = Pick<EventLogClient, "replayPages">;

interface Range {
  firstEventId: string;
  lastEventId: string;
}

export class Audit {
  readonly history = new History();
  readonly #ledger: Ledger;
  readonly #heads: KnownHeads;
  readonly #chain = new HistoryChain();
  /** Positions of the ledger's batches in the log. */
  readonly #found = new Map<LedgerEntry, Range>();
  /** Names of batches submitted by clients other than the soak's writers. */
  readonly #ofOthers = new Set<string>();
  /** The events in the newest batch, until it is complete. */
  #open: CommittedEvent[] = [];
  /** Number of acknowledged batches that were found. */
  #settled = 0;
  readonly #lastOfSource = new Map<string, string>();
  readonly #retired = new Map<string, string>();
  /** The newest event, which the next read must return again, and the id of the preceding event. */
  #anchor: { after: string | null; eventId: string; eventHash: string } | null = null;

  /** @param heads expected chain heads, to which computed ones are added. */
  constructor(ledger: Ledger, heads: KnownHeads) {
    this.#ledger = ledger;
    this.#heads = heads;
  }

  /**
   * Reads new commits and checks everything acknowledged before the call.
   * @throws {Violation} if the log contradicts the ledger.
   */
  async catchUp(client: Pages, signal: AbortSignal): Promise<void> {
    const due = this.#ledger.due();
    let anchor = this.#anchor;
    const after = anchor?.after ?? null;
    for await (const { events } of client.replayPages({ after, limit: PAGE_EVENTS, signal })) {
      if (anchor !== null) {
        const isThere = anchor.eventHash === events.shift()?.event_hash;
        claim(isThere, `event ${anchor.eventId} was in the log but is lost`);
        anchor = null;
      }
      this.takeAll(events);
    }
    this.settle(due);
  }

  /** Adds the next events in the log. */
  takeAll(events: readonly CommittedEvent[]): void {
    for (const event of events) this.#take(event);
  }

  /** Completes the newest batch, and checks that the log contains everything acknowledged. */
  settle({ batches, retirements }: Due): void {
    this.#closeBatch();
    for (const { source, retirement_event_id } of retirements) {
      const found = this.#retired.get(source);
      claim(
        found === retirement_event_id,
        `the retirement of ${source} is lost: expected ${retirement_event_id}, found ${
          found ?? "none"
        }`,
      );
    }
    for (; this.#settled < batches; this.#settled++) {
      const entry = this.#ledger.acknowledged[this.#settled]!;
      const found = this.#found.get(entry);
      claim(found !== undefined, `${nameOf(entry)} was acknowledged, but is lost`);
      const { firstEventId, lastEventId } = entry.receipt!;
      const isSame = found.firstEventId === firstEventId && found.lastEventId === lastEventId;
      const ids = `${found.firstEventId} to ${found.lastEventId}`;
      const expected = `${firstEventId} to ${lastEventId}`;
      claim(isSame, `${nameOf(entry)} has event ids ${ids}, not ${expected}`);
    }
    const { lastEventId } = this.history;
    if (lastEventId !== null) this.#heads.set(lastEventId, this.#chain.head);
  }

  /** @throws {Violation} if a known head belongs to an event that the log does not contain. */
  checkHeads(): void {
    for (const eventId of this.#heads.keys()) {
      const isThere = this.history.has(eventId);
      claim(isThere, `the log does not contain event ${eventId}, whose chain head is known`);
    }
  }

  #take(event: CommittedEvent): void {
    const before = this.#open.at(-1);
    const isSameBatch = before?.source === event.source && before.batch_id === event.batch_id;
    if (!isSameBatch) this.#closeBatch();
    checkHashes(event);
    const after = this.history.lastEventId;
    this.history.add(event);
    this.#anchor = { after, eventId: event.event_id, eventHash: event.event_hash };
    this.#chain.append(event.event_hash);
    const known = this.#heads.get(event.event_id) ?? this.#chain.head;
    claim(known === this.#chain.head, `the chain head after event ${event.event_id} has changed`);
    this.#open.push(event);
  }

  #closeBatch(): void {
    const [first] = this.#open;
    if (first === undefined) return;
    const events = this.#open;
    this.#open = [];
    if (first.source === "system") this.#checkRetirement(events);
    else this.#checkBatch(events);
    this.#lastOfSource.set(first.source, events.at(-1)!.event_id);
  }

  #checkBatch(events: CommittedEvent[]): void {
    const { source, batch_id: batchId, event_id: firstEventId } = events[0]!;
    const name = nameOf({ source, batchId });
    claim(!this.#retired.has(source), `${name} was committed after its source was retired`);
    const isAtOnce = events.every(({ observed_at }) => observed_at === events[0]!.observed_at);
    claim(isAtOnce, `${name} has several commit times`);
    const entry = this.#ledger.find(source, batchId);
    if (entry === undefined) {
      const isOfOthers = this.#ledger.mayHold(events);
      claim(isOfOthers, `${name} is in the log, but no client submitted it`);
      claim(!this.#ofOthers.has(name), `${name} is in the log twice, or in parts`);
      this.#ofOthers.add(name);
      return;
    }
    claim(!entry.isRefused, `${name} is in the log, but was rejected`);
    claim(!this.#found.has(entry), `${name} is in the log twice, or in parts`);
    const { length } = events;
    claim(length === entry.events, `${name} has ${length} of ${entry.events} events in the log`);
    const digest = digestOf(source, events.map(digested));
    claim(digest === entry.digest, `${name} in the log differs from the submitted batch`);
    this.#found.set(entry, { firstEventId, lastEventId: events.at(-1)!.event_id });
  }

  #checkRetirement(events: readonly CommittedEvent[]): void {
    const [{ kind, record_key: source, payload, event_id }, ...others] = events as [CommittedEvent];
    const name = `the retirement of ${source}`;
    claim(
      kind === "source_retired" && others.length === 0,
      `${name} is not a single source_retired event`,
    );
    claim(!this.#retired.has(source), `${name} is in the log twice`);
    const frontier = this.#lastOfSource.get(source);
    const { final_frontier: told } = payload as { final_frontier: string };
    claim(told === frontier, `${name} names ${told} as its last event, not ${frontier}`);
    this.#retired.set(source, event_id);
  }
}

/** Returns the members of an event that the batch digest covers. */
export function digested({ stream, record_key, kind, content_hash, occurred_at }: CommittedEvent) {
  const event = { stream, record_key, kind, content_hash };
  return occurred_at === undefined ? event : { ...event, occurred_at };
}

function checkHashes({ payload, event_hash, ...envelope }: CommittedEvent): void {
  const { event_id, content_hash } = envelope;
  const contentHash = sha256Hex(canonicalize(payload));
  claim(contentHash === content_hash, `the payload of event ${event_id} does not match its hash`);
  claim(
    sha256Hex(canonicalize(envelope)) === event_hash,
    `event ${event_id} does not match its hash`,
  );
}
