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
import { RandomMutations } from "./random_mutations.ts";

const CLIENTS = 4;
/** Times that each client asks for one or more mutations. */
const STEPS_EACH = 9;
/** Mutations that a client asks for in one turn. */
const BURST_MAX = 4;
const DISTURBANCES_MAX = 3;
const CALLS_BETWEEN_MAX = 30;
/** A failed fsync is followed by a restart: nothing else helps. */
const DISTURBANCES = ["no_room", "failed_sync", "restart", "kill", "kill", "seal"] as const;
/** Few, so that clients meet. */
const BATCH_IDS = 12;

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
  readonly #mutations: RandomMutations;

  constructor(random: Random, target: HistoryTarget) {
    this.#random = random;
    this.#target = target;
    this.#mutations = new RandomMutations(random, BATCH_IDS);
  }

  /** What a client does until it goes on. */
  async step(): Promise<void> {
    await pause(this.#random, 60);
    const burst = this.#random() < 0.5 ? 1 : randomInteger(this.#random, 1, BURST_MAX);
    await Promise.all(Array.from({ length: burst }, () => this.#call(this.#mutations.next())));
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
    if (typeof body.final_frontier === "string") {
      this.#learnEvent("system", "service.source_lifecycle", body.final_frontier, body);
    }
    if (mutation.kind === "retire") return;
    const { source, events } = mutation.batch;
    const frontier = body.last_event_id ?? body.actual_frontier;
    if (typeof frontier === "string") {
      this.#learnEvent(source, events.at(-1)!.stream, frontier, null);
    }
  }

  #learnEvent(source: string, stream: string, eventId: string, payload: unknown): void {
    this.#mutations.learn({ source, events: [{ event_id: eventId, stream, payload }] });
  }
}
