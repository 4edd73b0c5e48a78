/**
 * Checks the log against the ledger and a sequential model of the service. Every acknowledged batch
 * exists once, complete, with its receipt. Every other batch is absent or complete, and the log
 * contains nothing else. The client rehashes each event, and the history chain is recomputed from
 * genesis. Every replay, follow and stream listing must exactly match the part of the log that it
 * covers.
 *
 * Audits are incremental. During a soak, one audit follows the log. At the end, a second one reads
 * the whole log again.
 */
import { isDeepStrictEqual } from "node:util";
import type { EventLogClient } from "../../src/client/event_log_client.ts";
import type { ReplayFilter } from "../../src/client/replay.ts";
import { GENESIS_HEAD_HEX, nextHead } from "../../src/event/chain.ts";
import type { CommittedEvent, StreamSummary } from "../../src/event/types.ts";
import { firstIndex } from "../../src/first_index.ts";
import { isBatchOf, type LoggedBatch, loggedBatches } from "../../tests/support/history.ts";
import { SequentialModel } from "../../tests/support/sequential_model.ts";
import type { Mutation } from "../../tests/support/submitted.ts";
import { digestOf, type Due, type Ledger, markerOf, nameOf } from "./ledger.ts";
import { claim, Violation } from "./violation.ts";

const PAGE_EVENTS = 2000;

/** Known or computed chain heads, keyed by the event that each head follows. */
export type KnownHeads = Map<string, string>;

/** What a client has seen of the log. */
export interface Observation {
  /** Name of the observer, for messages. */
  observer: string;
  /** The last event that was covered. */
  through: string;
  /** Events, or a listing of all streams. */
  seen: Events | StreamSummary[];
}

/** Hashes of the events after a position (null: from the beginning) that match a filter. */
export interface Events {
  /** Any filter except `recordKey`. */
  filter: ReplayFilter;
  after: string | null;
  hashes: string[];
}

/** The source, stream and kind of an event. Few combinations exist. */
type Label = Pick<CommittedEvent, "source" | "stream" | "kind">;

interface KnownEvent {
  id: string;
  hash: string;
  label: Label;
}

export class Audit {
  readonly #ledger: Ledger;
  readonly #heads: KnownHeads;
  #head = GENESIS_HEAD_HEX;
  readonly #model = new SequentialModel();
  readonly #events: KnownEvent[] = [];
  readonly #labels = new Map<string, Label>();
  /** The events in the newest batch, until it is complete. */
  #open: CommittedEvent[] = [];
  /** Number of acknowledged batches that were found. */
  #settled = 0;

  /** @param heads expected chain heads, to which computed ones are added. */
  constructor(ledger: Ledger, heads: KnownHeads) {
    this.#ledger = ledger;
    this.#heads = heads;
  }

  /** Number of events. */
  get length(): number {
    return this.#events.length;
  }

  /** The newest event; undefined if there is none. */
  get #frontier(): string | undefined {
    return this.#events.at(-1)?.id;
  }

  /**
   * Reads new commits and checks everything acknowledged before the call.
   * @throws {Violation} if the log contradicts the ledger.
   */
  async catchUp(client: EventLogClient, signal: AbortSignal): Promise<void> {
    const due = this.#ledger.due();
    // The newest event, which this read must return again.
    let anchor = this.#events.at(-1);
    const after = this.#events.at(-2)?.id ?? null;
    const options = { after, limit: PAGE_EVENTS, verify: true, signal };
    for await (const { events } of client.replayPages(options)) {
      if (anchor !== undefined) {
        const isThere = anchor.hash === events.shift()?.event_hash;
        claim(isThere, `event ${anchor.id} was in the log but is lost`);
        anchor = undefined;
      }
      this.takeAll(events);
    }
    this.settle(due);
  }

  /** Adds the next events in the log. */
  takeAll(events: readonly CommittedEvent[]): void {
    const batches = loggedBatches([...this.#open, ...events], this.#frontier);
    // The last one may continue in the next events.
    this.#open = batches.pop()?.events ?? [];
    for (const batch of batches) this.#take(batch);
  }

  /** Completes the newest batch, and checks that the log contains everything acknowledged. */
  settle({ batches, retirements }: Due): void {
    for (const batch of loggedBatches(this.#open, this.#frontier)) this.#take(batch);
    this.#open = [];
    for (; this.#settled < batches; this.#settled++) {
      const entry = this.#ledger.acknowledged[this.#settled]!;
      this.#checkReceipt(nameOf(entry), entry.mutation, entry.receipt!);
    }
    for (const receipt of retirements) {
      const { source } = receipt;
      this.#checkReceipt(`the retirement of ${source}`, { kind: "retire", source }, receipt);
    }
    if (this.#frontier !== undefined) this.#heads.set(this.#frontier, this.#head);
  }

  /** @throws {Violation} if a known head belongs to an event that the log does not contain. */
  checkHeads(): void {
    for (const eventId of this.#heads.keys()) {
      const isThere = this.#events[this.#countThrough(eventId) - 1]?.id === eventId;
      claim(isThere, `the log does not contain event ${eventId}, whose chain head is known`);
    }
  }

  /**
   * Checks the observations that the log covers, and removes them. @returns how many it checked.
   * @throws {Violation} if an observation contradicts the log.
   */
  check(observations: Observation[]): number {
    const all = observations.splice(0);
    const isCovered = ({ through }: Observation) => through <= (this.#frontier ?? "");
    observations.push(...all.filter((observation) => !isCovered(observation)));
    for (const { observer, through, seen } of all.filter(isCovered)) {
      if (Array.isArray(seen)) this.#checkStreams(observer, through, seen);
      else this.#checkEvents(observer, through, seen);
    }
    return all.length - observations.length;
  }

  #checkEvents(observer: string, through: string, { filter, after, hashes }: Events): void {
    const start = after === null ? 0 : this.#countThrough(after);
    const isWanted = ({ label }: KnownEvent) =>
      (["source", "stream", "kind"] as const).every((name) =>
        filter[name] === undefined || filter[name] === label[name]
      );
    const expected = this.#events.slice(start, this.#countThrough(through)).filter(isWanted);
    const length = Math.max(expected.length, hashes.length);
    for (let place = 0; place < length; place++) {
      const [event, hash] = [expected[place], hashes[place]];
      if (event?.hash === hash) continue;
      const range = `after ${after ?? "the beginning"} through ${through}`;
      const counts = `${hashes.length} of ${expected.length} events ${range}`;
      const difference = `position ${place} has hash ${hash}, not event ${event?.id}`;
      throw new Violation(`${observer} saw ${counts}: ${difference}`);
    }
  }

  #checkStreams(observer: string, through: string, streams: readonly StreamSummary[]): void {
    const rows = new Map<string, StreamSummary>();
    const events = this.#events.slice(0, this.#countThrough(through));
    for (const { id, label: { source, stream } } of events) {
      const event_count = (rows.get(`${source} ${stream}`)?.event_count ?? 0) + 1;
      rows.set(`${source} ${stream}`, { source, stream, frontier_event_id: id, event_count });
    }
    const expected = [...rows].sort(([a], [b]) => a < b ? -1 : 1).map(([, row]) => row);
    for (let place = 0; place < Math.max(streams.length, expected.length); place++) {
      const [row, wanted] = [streams[place], expected[place]];
      const told = `${JSON.stringify(row)}, expected ${JSON.stringify(wanted)}`;
      claim(isDeepStrictEqual({ ...row }, wanted), `${observer} listed ${told}`);
    }
  }

  /** Returns the number of events up to an id, inclusive. */
  #countThrough(eventId: string): number {
    return firstIndex(this.#events.length, (place) => this.#events[place]!.id > eventId);
  }

  #take(batch: LoggedBatch): void {
    for (const event of batch.events) this.#add(event);
    const mutation = this.#mutationOf(batch);
    const answer = this.#model.answer(mutation);
    const told = JSON.stringify(answer?.body);
    claim(answer === null, `${nameOf(batch)} is in the log twice, or against the rules: ${told}`);
    const { body } = this.#model.commit(mutation, batch);
    if (mutation.kind === "append") return;
    const { final_frontier } = batch.events[0]!.payload as Record<string, unknown>;
    const expected = body["final_frontier"];
    const name = `the retirement of ${mutation.source}`;
    claim(final_frontier === expected, `${name} names ${final_frontier}, not ${expected}`);
  }

  #add(event: CommittedEvent): void {
    const { event_id: id, event_hash: hash, source, stream, kind } = event;
    const name = `${source}\n${stream}\n${kind}`;
    const label = this.#labels.get(name) ?? { source, stream, kind };
    this.#labels.set(name, label);
    this.#events.push({ id, hash, label });
    this.#head = nextHead(this.#head, hash);
    const known = this.#heads.get(id) ?? this.#head;
    claim(known === this.#head, `the chain head after event ${id} has changed`);
  }

  /** Returns what committed a batch. */
  #mutationOf(batch: LoggedBatch): Mutation {
    const { source, batchId, events } = batch;
    if (source === "system") {
      const retirement: Mutation = { kind: "retire", source: events[0]!.record_key };
      const isOne = events[0]!.kind === "source_retired" && isBatchOf(retirement, batch);
      claim(isOne, `${nameOf(batch)} is no retirement of ${retirement.source}`);
      return retirement;
    }
    const digest = digestOf(source, events);
    const entry = this.#ledger.find(source, batchId);
    if (entry === undefined) {
      const isOfOthers = this.#ledger.mayHold(events);
      claim(isOfOthers, `${nameOf(batch)} is in the log, but no client submitted it`);
      const submitted = { source, batch_id: batchId, events: markerOf(events) };
      return { kind: "append", batch: submitted, digest };
    }
    const isSame = digest === entry.mutation.digest;
    const counts = `${events.length} of ${entry.events} events`;
    claim(isSame, `${nameOf(batch)} in the log differs from the submitted batch: ${counts}`);
    return entry.mutation;
  }

  #checkReceipt(name: string, mutation: Mutation, receipt: object): void {
    const { status, body } = this.#model.answer(mutation) ?? { status: 0, body: {} };
    claim(status === 200, `${name} was acknowledged, but is lost`);
    const isRight = isDeepStrictEqual({ ...receipt, status: body["status"] }, body);
    const told = `${JSON.stringify(receipt)}, not ${JSON.stringify(body)}`;
    claim(isRight, `${name} has receipt ${told}`);
  }
}
