/** Chooses mutations for the clients in a history, based on what they have learned so far. */
import type { CommittedEvent } from "../../src/event/types.ts";
import { type Random, randomInteger, randomItem } from "../../tools/support/random.ts";
import {
  lineageMarker,
  type Mutation,
  type SubmittedBatch,
  type SubmittedEvent,
} from "./submitted.ts";

const STREAMS = ["s", "s.t", "s-t"];
const RECORD_KEYS = ["1", "2", "Zoë 東京 😀", 'a"b\\c\n'];
const EVENTS_MAX = 2;
/** Maximum number of events in a large batch, enough to fill several disk sectors. */
const LARGE_EVENTS_MAX = 20;
const LARGE_TEXT_MAX = 3000;
const NEVER_COMMITTED = "019b7c4e-2d37-7a01-8f00-000000000001";

/** The members of a committed event that later mutations refer to. */
export type LearnedEvent = Pick<CommittedEvent, "event_id" | "stream" | "payload">;

export class RandomMutations {
  readonly #random: Random;
  readonly #asked: Mutation[] = [];
  readonly #sources: string[];
  /** Final frontiers by source. */
  readonly #retired = new Map<string, string>();
  /** Frontiers by source and stream. */
  readonly #frontiers = new Map<string, string>();
  #count = 0;

  /** @param sources initial sources. The names of successors begin with one of them. */
  constructor(random: Random, sources: readonly string[] = ["shop", "crm", "erp"]) {
    this.#random = random;
    this.#sources = [...sources];
  }

  /** All sources named so far. */
  get sources(): readonly string[] {
    return this.#sources;
  }

  /** A random earlier mutation, or a new one if there is none. */
  before(): Mutation {
    return this.#asked.length === 0 ? this.next() : randomItem(this.#random, this.#asked);
  }

  /** The same mutation, or one with the same batch id but different events. */
  twinOf(mutation: Mutation): Mutation {
    return this.#random() < 0.5 ? mutation : this.#changed(mutation);
  }

  next(): Mutation {
    return this.#asking(this.#choose());
  }

  /** A batch with a precondition on a stream of `source`. */
  conditional(source: string): Mutation {
    return this.#asking({ kind: "append", batch: this.#conditioned(this.#batch(source)) });
  }

  #asking(mutation: Mutation): Mutation {
    this.#asked.push(mutation);
    return mutation;
  }

  /** Records a committed batch. */
  learn({ source, events }: { source: string; events: readonly LearnedEvent[] }): void {
    for (const { event_id, stream, payload } of events) {
      this.#frontiers.set(`${source} ${stream}`, event_id);
      if (source !== "system") continue;
      const retirement = payload as { source: string; final_frontier: string };
      this.#retired.set(retirement.source, retirement.final_frontier);
      this.#sources.push(`${retirement.source.split("-")[0]}-${this.#sources.length}`);
    }
  }

  #choose(): Mutation {
    const chance = this.#random();
    if (chance < 0.015) return { kind: "retire", source: this.#source() };
    if (chance < 0.12 && this.#asked.length > 0) return this.before();
    if (chance < 0.16 && this.#asked.length > 0) return this.#changed(this.before());
    if (chance < 0.2) return this.#successor();
    const batch = this.#batch();
    return { kind: "append", batch: chance < 0.35 ? this.#conditioned(batch) : batch };
  }

  /** A random source, rarely a retired one. */
  #source(): string {
    const source = randomItem(this.#random, this.#sources);
    if (!this.#retired.has(source) || this.#random() < 0.1) return source;
    return randomItem(this.#random, this.#sources.filter((name) => !this.#retired.has(name)));
  }

  #batch(source: string = this.#source()): SubmittedBatch {
    const isLarge = this.#random() < 0.02;
    const count = randomInteger(this.#random, 1, isLarge ? LARGE_EVENTS_MAX : EVENTS_MAX);
    return {
      source,
      batch_id: `b/${this.#count++}`,
      events: Array.from({ length: count }, () => this.#event()),
    };
  }

  #event(): SubmittedEvent {
    const random = this.#random;
    const length = random() < 0.03 ? randomInteger(random, 500, LARGE_TEXT_MAX) : 10;
    return {
      stream: randomItem(random, STREAMS),
      record_key: randomItem(random, RECORD_KEYS),
      kind: random() < 0.9 ? "upserted" : "deleted",
      ...(random() < 0.3 &&
        { occurred_at: `2025-12-31T23:59:59.${randomInteger(random, 1, 999)}Z` }),
      payload: { number: random(), text: "x".repeat(length) },
    };
  }

  /** The same batch id with different events. */
  #changed(mutation: Mutation): Mutation {
    if (mutation.kind === "retire") return mutation;
    const { source, batch_id, events } = mutation.batch;
    return { kind: "append", batch: { source, batch_id, events: [...events, this.#event()] } };
  }

  /** A batch whose events share one stream, with a precondition that usually holds. */
  #conditioned(batch: SubmittedBatch): SubmittedBatch {
    const { stream } = batch.events[0]!;
    const frontier = this.#frontiers.get(`${batch.source} ${stream}`) ?? null;
    const expected_frontier = this.#random() < 0.75 ? frontier : this.#otherFrontier();
    return {
      ...batch,
      events: batch.events.map((event) => ({ ...event, stream })),
      stream_precondition: { stream, expected_frontier },
    };
  }

  #otherFrontier(): string | null {
    return randomItem(this.#random, [null, NEVER_COMMITTED, ...this.#frontiers.values()]);
  }

  /** A batch that begins, or claims to begin, a successor source. Its marker may be valid. */
  #successor(): Mutation {
    const batch = this.#batch(this.#random() < 0.8 ? this.#sources.at(-1) : this.#source());
    const others = this.#random() < 0.8 ? [...this.#retired.keys()] : this.#sources;
    const predecessors = others.filter((name) => name !== batch.source);
    if (predecessors.length === 0) return { kind: "append", batch };
    const predecessor = randomItem(this.#random, predecessors);
    const isRight = this.#random() < 0.8;
    const frontier = (isRight ? this.#retired.get(predecessor) : this.#otherFrontier()) ??
      NEVER_COMMITTED;
    batch.events.unshift(lineageMarker(predecessor, frontier));
    return { kind: "append", batch };
  }
}
