/**
 * Runs a random history: several clients append, retry, change, retire and declare lineage with
 * what they have learned of the log, while the service is started again, killed, sealed, or has a
 * disk that fails.
 */
import type { Call, History, Mutation } from "./history.ts";
import type { HistoryTarget } from "./history_target.ts";
import type { Outcome } from "./outcome.ts";
import { pause } from "./pause.ts";
import { type Random, randomInteger, randomItem } from "../../tools/support/random.ts";
import { lineageMarker, type SubmittedBatch, type SubmittedEvent } from "./submitted.ts";

const CLIENTS = 4;
/** Times that each client asks for one or more mutations. */
const STEPS_EACH = 9;
/** Mutations that a client asks for in one turn. */
const BURST_MAX = 4;
const DISTURBANCES_MAX = 3;
const CALLS_BETWEEN_MAX = 30;
/** A failed fsync is followed by a restart: nothing else helps. */
const DISTURBANCES = ["no_room", "failed_sync", "restart", "kill", "kill", "seal"] as const;
/** Few names, so that clients meet. */
const SOURCES = ["a", "a-b", "b"];
/** Sources that begin later, if they can with a lineage marker. */
const SUCCESSORS = ["a.b", "c", "d", "e"];
const STREAMS = ["s", "s.t"];
const BATCH_IDS = Array.from({ length: 12 }, (_, place) => `${place}`);
const NEVER_COMMITTED = "019b7c4e-2d37-7a01-8f00-000000000001";

export async function runHistory(random: Random, target: HistoryTarget): Promise<History> {
  const run = new Run(random, target);
  const clients = Array.from({ length: CLIENTS }, async () => {
    for (let step = 0; step < STEPS_EACH; step++) await run.step();
  });
  await Promise.all([...clients, run.disturb()]);
  // A writer that stopped answers nothing of what it holds, so the last look is a new start's.
  await target.restart();
  return { calls: run.calls, events: await target.events(), streams: await target.streams() };
}

class Run {
  readonly calls: Call[] = [];
  readonly #random: Random;
  readonly #target: HistoryTarget;
  #now = 0;
  /** Who waits until there have been so many calls. */
  #waiting: { calls: number; wake: () => void } | null = null;
  /** Event ids that clients have been told of. */
  readonly #seen: string[] = [NEVER_COMMITTED];
  /** Frontiers that clients have been told of, by source and stream. */
  readonly #frontiers = new Map<string, string>();
  readonly #retired = new Map<string, string>();

  constructor(random: Random, target: HistoryTarget) {
    this.#random = random;
    this.#target = target;
  }

  /** What a client does until it goes on. */
  async step(): Promise<void> {
    await pause(this.#random, 60);
    const burst = this.#random() < 0.5 ? 1 : randomInteger(this.#random, 1, BURST_MAX);
    await Promise.all(Array.from({ length: burst }, () => this.#call(this.#mutation())));
  }

  /** Starts the service again now and then, or lets its disk fail. */
  async disturb(): Promise<void> {
    for (let count = randomInteger(this.#random, 0, DISTURBANCES_MAX); count > 0; count--) {
      await this.#afterCalls(randomInteger(this.#random, 1, CALLS_BETWEEN_MAX));
      await this.#disturbOnce();
    }
  }

  async #disturbOnce(): Promise<void> {
    const disturbance = randomItem(this.#random, DISTURBANCES);
    if (disturbance === "no_room") return this.#target.failDisk?.(disturbance);
    if (disturbance === "failed_sync") {
      this.#target.failDisk?.(disturbance);
      await this.#afterCalls(4);
    }
    if (disturbance === "seal") return await this.#target.seal();
    await (disturbance === "kill" ? this.#target.kill() : this.#target.restart());
  }

  /** Waits for so many more calls; every client makes STEPS_EACH at least. */
  async #afterCalls(count: number): Promise<void> {
    const calls = Math.min(this.calls.length + count, CLIENTS * STEPS_EACH);
    if (this.calls.length >= calls) return;
    await new Promise<void>((wake) => this.#waiting = { calls, wake });
    await pause(this.#random, 40);
  }

  async #call(mutation: Mutation): Promise<void> {
    const call: Call = { mutation, invokedAt: this.#now++, answeredAt: Infinity, outcome: null };
    this.calls.push(call);
    if (this.calls.length === this.#waiting?.calls) this.#waiting.wake();
    call.outcome = mutation.kind === "append"
      ? await this.#target.append(mutation.batch)
      : await this.#target.retire(mutation.source);
    call.answeredAt = this.#now++;
    if (call.outcome === null) {
      // Who gets no answer asks again, as a rule.
      if (this.#random() < 0.7) await this.#call(mutation);
    } else {
      this.#learn(mutation, call.outcome);
    }
  }

  #learn(mutation: Mutation, { body }: Outcome): void {
    for (const value of Object.values(body)) {
      if (typeof value === "string" && value.length === NEVER_COMMITTED.length) {
        this.#seen.push(value);
      }
    }
    if (typeof body.final_frontier === "string") {
      this.#retired.set(body.source as string, body.final_frontier);
    }
    if (mutation.kind === "append") {
      const { source, events } = mutation.batch;
      const frontier = body.last_event_id ?? body.actual_frontier;
      if (typeof frontier !== "string") return;
      this.#frontiers.set(`${source} ${events.at(-1)!.stream}`, frontier);
    }
  }

  #mutation(): Mutation {
    const random = this.#random;
    if (random() < 0.08) return { kind: "retire", source: this.#source() };
    if (random() < 0.25 && this.calls.length > 0) {
      return this.#again(randomItem(random, this.calls));
    }
    const batch: SubmittedBatch = {
      source: this.#source(),
      batch_id: randomItem(random, BATCH_IDS),
      events: Array.from({ length: randomInteger(random, 1, 3) }, () => this.#event()),
    };
    const marks = random() < (SUCCESSORS.includes(batch.source) ? 0.6 : 0.05);
    if (marks) batch.events.unshift(this.#marker(batch.source));
    return { kind: "append", batch: random() < 0.4 ? this.#conditioned(batch) : batch };
  }

  #source(): string {
    return randomItem(this.#random, this.#random() < 0.75 ? SOURCES : SUCCESSORS);
  }

  /** A mutation asked for before: the same, with other events, or without its precondition. */
  #again({ mutation }: Call): Mutation {
    if (mutation.kind === "retire" || this.#random() < 0.6) return mutation;
    const { source, batch_id, events } = mutation.batch;
    if (this.#random() < 0.5) return { kind: "append", batch: { source, batch_id, events } };
    return { kind: "append", batch: { source, batch_id, events: [...events, this.#event()] } };
  }

  #event(): SubmittedEvent {
    return {
      stream: randomItem(this.#random, STREAMS),
      record_key: "1",
      kind: "upserted",
      payload: randomInteger(this.#random, 0, 1),
    };
  }

  #marker(source: string): SubmittedEvent {
    const retired = [...this.#retired.keys()].filter((name) => name !== source);
    const others = SOURCES.filter((name) => name !== source);
    const isLikely = retired.length > 0 && this.#random() < 0.8;
    const predecessor = randomItem(this.#random, isLikely ? retired : others);
    const frontier = this.#retired.get(predecessor);
    const isKnown = frontier !== undefined && this.#random() < 0.8;
    return lineageMarker(predecessor, isKnown ? frontier : randomItem(this.#random, this.#seen));
  }

  /** The batch with all events in one stream, and a condition on it that may well hold. */
  #conditioned(batch: SubmittedBatch): SubmittedBatch {
    const isMarked = batch.events[0]!.stream === "service.source_lineage";
    const events = isMarked ? batch.events.slice(0, 1) : batch.events;
    const { stream } = events[0]!;
    const known = this.#frontiers.get(`${batch.source} ${stream}`) ?? null;
    const expected_frontier = this.#random() < 0.8
      ? known
      : randomItem(this.#random, [null, ...this.#seen]);
    return {
      ...batch,
      events: events.map((event) => ({ ...event, stream })),
      stream_precondition: { stream, expected_frontier },
    };
  }
}
