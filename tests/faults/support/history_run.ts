/**
 * A long history on a machine that fails: clients submit, read and follow, operators restart and
 * seal, the clock is set, operations of the disk fail, and at the end of each generation the power
 * goes, now and then again while the log recovers. All that is seen is held to what is known.
 */
import assert from "node:assert/strict";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import type { EventLogService } from "../../../src/service/event_log.ts";
import type { Mutation } from "../../support/history.ts";
import { type Outcome, statusOf } from "../../support/outcome.ts";
import { type Random, randomInteger, randomItem } from "../../../tools/support/random.ts";
import { joinPieces, TEST_TIME_MS } from "../../support/test_log.ts";
import { assertDurable, REPAIR_REPORT, verified } from "./crash_check.ts";
import { replayText } from "../../support/stream_listing.ts";
import { answerTo } from "../../support/submitted.ts";
import { compare, type Compared, reopen } from "./history_compare.ts";
import { HistoryFollower } from "./history_follower.ts";
import { HistoryMachine } from "./history_machine.ts";
import { RandomMutations } from "../../support/random_mutations.ts";
import { KnownHistory } from "../../support/known_history.ts";

const GENERATIONS = 4;
const BURST_MAX = 4;
/** How many events a follower is given at its start, at the most; now and then all. */
const FOLLOWED_MAX = 30;
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;
/** What happens to the clock; a machine without one begins in 1970. */
const CLOCK_CHANGES: readonly ((nowMs: number) => number)[] = [
  (nowMs) => nowMs + 1,
  (nowMs) => nowMs + 0.5,
  (nowMs) => nowMs - 1,
  (nowMs) => Math.max(0, nowMs - HOUR_MS),
  (nowMs) => nowMs + HOUR_MS,
  () => 0,
  () => TEST_TIME_MS,
  () => TEST_TIME_MS + 50 * YEAR_MS,
];

/** About how many changes of the disk there are while the power goes. */
const RECOVERY_CHANGES_MAX = 8;
const CHANGES_MAX = { submissions: 5, shutdown: 3, seal: 30 };

/** How often each thing happened, by its name. */
export type Tally = Record<string, number>;

type Step =
  | "submit"
  | "repeat"
  | "burst"
  | "read"
  | "fault"
  | "restart"
  | "kill"
  | "seal"
  | "clock";
/** How likely each step is, in thousandths. */
const STEPS: Record<Step, number> = {
  submit: 644,
  repeat: 110,
  burst: 110,
  read: 60,
  fault: 20,
  restart: 7,
  kill: 5,
  seal: 4,
  clock: 40,
};

export class HistoryRun {
  readonly #random: Random;
  readonly #steps: number;
  readonly #tally: Tally;
  readonly #machine: HistoryMachine;
  readonly #mutations: RandomMutations;
  readonly #known: KnownHistory;
  #service!: EventLogService;
  #follower!: HistoryFollower;
  #isPoisoned = false;

  /** @param steps of each generation. */
  constructor(random: Random, steps: number, tally: Tally) {
    this.#random = random;
    this.#steps = steps;
    this.#tally = tally;
    this.#machine = new HistoryMachine(random);
    this.#mutations = new RandomMutations(random);
    this.#known = new KnownHistory({ onCommit: (batch) => this.#mutations.learn(batch) });
  }

  async run(): Promise<void> {
    await this.#serve();
    for (let generation = 0; generation < GENERATIONS; generation++) {
      for (let step = 0; step < this.#steps; step++) await this.#step();
      if (this.#isPoisoned) await this.#restart("restart");
      await this.#compareWithReopened();
      await this.#crash();
      await this.#recover();
    }
    this.#service.endFollowers();
  }

  #count(what: string): void {
    this.#tally[what] = (this.#tally[what] ?? 0) + 1;
  }

  async #step(): Promise<void> {
    if (this.#isPoisoned && this.#random() < 0.5) {
      return await this.#restart(randomItem(this.#random, ["restart", "kill"] as const));
    }
    const step = this.#chooseStep();
    this.#count(step);
    switch (step) {
      case "submit":
        return await this.#submit([this.#mutations.next()]);
      case "repeat":
        return await this.#submit([this.#mutations.before()]);
      case "burst":
        return await this.#burst(randomInteger(this.#random, 2, BURST_MAX));
      case "read":
        return await this.#read();
      case "fault":
        return this.#arm();
      case "restart":
      case "kill":
      case "seal":
        return await this.#restart(step);
      case "clock":
        return this.#machine.changeClock(randomItem(this.#random, CLOCK_CHANGES));
    }
  }

  #chooseStep(): Step {
    let left = this.#random() * 1000;
    for (const [step, weight] of Object.entries(STEPS)) {
      left -= weight;
      if (left < 0) return step as Step;
    }
    return "submit";
  }

  #arm(): void {
    const kinds = this.#random() < 0.7 ? (["write", "sync"] as const) : (["read"] as const);
    this.#machine.arm({ count: randomInteger(this.#random, 1, 3), kinds });
  }

  async #burst(count: number): Promise<void> {
    const mutations = Array.from({ length: count }, () => this.#mutations.next());
    await this.#submit(mutations);
  }

  /** Asks for mutations at once. */
  async #submit(mutations: readonly Mutation[]): Promise<void> {
    const answers = mutations.map(async (mutation) => ({
      mutation,
      outcome: await this.#answerTo(mutation),
    }));
    const answered = await Promise.all(answers);
    for (const { outcome } of answered) this.#count(String(statusOf(outcome)));
    this.#isPoisoned ||= answered.some(({ outcome }) => statusOf(outcome) === "writer_poisoned");
    if (this.#isPoisoned) await this.#follower.ended();
    if (this.#machine.isOff) {
      this.#known.answeredLast(answered);
    } else {
      const { frontier } = this.#known;
      this.#known.answered(answered, await this.#again(() => replayText(this.#service, frontier)));
    }
  }

  async #answerTo(mutation: Mutation): Promise<Outcome> {
    const outcome = await this.#machine.attempt(() => answerTo(this.#service, mutation));
    if (outcome === null) return { status: 500, body: { error: "failed" } };
    const isRefused = ["storage_full", "writer_poisoned"].includes(String(statusOf(outcome)));
    assert.ok(this.#machine.hasFailed || !isRefused, "nothing has failed");
    return outcome;
  }

  /** What fails once by the disk works the next time. */
  async #again<T>(action: () => Promise<T>): Promise<T> {
    const first = await this.#machine.attempt(action);
    return first ?? await action();
  }

  /** A page is what a plain look at all events gives. */
  async #read(): Promise<void> {
    const random = this.#random;
    const { events } = this.#known;
    const after = random() < 0.8 ? randomItem(random, events)?.event_id : undefined;
    const { source, stream } = randomItem(random, events) ?? {};
    const filter = { ...(random() < 0.5 && { source }), ...(random() < 0.5 && { stream }) };
    const limitEvents = randomItem(random, [1, 10, 1000]);
    const isWanted = (event: CommittedEvent) =>
      (after === undefined || event.event_id > after) &&
      (filter.source ?? event.source) === event.source &&
      (filter.stream ?? event.stream) === event.stream;
    const query = { after, filter, limitEvents } as Parameters<EventLogService["replay"]>[0];
    const text = await this.#again(() => joinPieces(this.#service.replay(query)));
    const expected = events.filter(isWanted).slice(0, limitEvents);
    assert.ok(text === expected.map((event) => JSON.stringify(event)).join(","), "a page");
  }

  /** The process ends, in order or not; a sealing may come; then there is a new one. */
  async #restart(how: "restart" | "kill" | "seal"): Promise<void> {
    await this.#end(how === "kill" ? "killed" : "closed");
    if (how === "seal") await this.#seal();
    await this.#serve();
  }

  async #end(how: "closed" | "killed"): Promise<void> {
    if (how === "closed") await this.#machine.attempt(() => this.#service.close());
    else this.#service.endFollowers();
    if (!this.#machine.isOff) this.#machine.endProcess();
  }

  async #seal(): Promise<void> {
    if (this.#random() < 0.4) this.#machine.arm({ count: randomInteger(this.#random, 1, 60) });
    await this.#machine.seal();
    if (this.#machine.hasFailed) this.#count("sealing failed");
    if (!this.#machine.isOff) this.#machine.endProcess();
  }

  /** Starts the service, again if need be, and sees what is there. */
  async #serve(): Promise<void> {
    if (this.#random() < 0.2) this.#machine.arm({ count: randomInteger(this.#random, 1, 40) });
    const report = (line: string) => {
      if (line.startsWith("tail.ndjson: removed")) assert.match(line, REPAIR_REPORT);
    };
    let service = await this.#machine.start(report);
    while (service === null) {
      this.#count("start failed");
      if (this.#machine.isOff) this.#machine.restorePower();
      else this.#machine.endProcess();
      service = await this.#machine.start(report);
    }
    if (this.#machine.isOff) {
      this.#machine.restorePower();
      return await this.#serve();
    }
    this.#machine.endProcess();
    this.#service = service;
    this.#isPoisoned = false;
    assertDurable(this.#machine.disk);
    this.#known.settle(await replayText(service, this.#known.frontier));
    this.#follower?.check(this.#known.text);
    this.#follow();
  }

  /** Follows from one of the last events, or from the start. */
  #follow(): void {
    const { events, text } = this.#known;
    const isAtStart = this.#random() < 0.1;
    const place = events.length - 1 - randomInteger(this.#random, 0, FOLLOWED_MAX);
    const after = isAtStart ? undefined : events[place]?.event_id;
    const next = after === undefined ? events[0] : events[place + 1];
    const end = text === "" ? 0 : text.length + 1;
    const start = next === undefined ? end : text.lastIndexOf(beginning(next));
    this.#follower = new HistoryFollower(this.#service, after, start);
  }

  /** What the running service has built up is what a new one builds from its files. */
  async #compareWithReopened(): Promise<void> {
    this.#machine.disarm();
    await this.#follower.catchUp(this.#known.text, this.#machine.hasFailed);
    if (this.#follower.reason === "replay_failed") this.#count("replay_failed");
    const here = this.#here();
    await compare(here, [await reopen(here)]);
  }

  #here(): Compared {
    return {
      service: this.#service,
      tree: this.#machine.disk.tree(),
      known: this.#known,
      mutations: this.#mutations,
      random: this.#random,
    };
  }

  /** The power goes, while the service works, is shut down, or the log is sealed. */
  async #crash(): Promise<void> {
    const random = this.#random;
    const during = randomItem(random, ["submissions", "submissions", "shutdown", "seal"] as const);
    if (during === "seal") await this.#end("closed");
    this.#machine.crashAt(randomInteger(random, 1, CHANGES_MAX[during]));
    if (during === "submissions") {
      await this.#burst(BURST_MAX);
      await this.#burst(BURST_MAX);
      await this.#end("killed");
    } else if (during === "shutdown") {
      await this.#end("closed");
    } else {
      await this.#machine.seal();
    }
    this.#count(`crash in ${this.#machine.isOff ? during : "between"}`);
    this.#machine.restorePower();
  }

  /** What is left is right for any reader, and a start goes on from it, also one that crashes. */
  async #recover(): Promise<void> {
    if (this.#random() < 0.5) {
      this.#machine.crashAt(randomInteger(this.#random, 1, RECOVERY_CHANGES_MAX));
      const service = await this.#machine.start(() => {});
      service?.endFollowers();
      if (this.#machine.isOff) this.#count("crash in recovery");
      this.#machine.restorePower();
    }
    const { events_checked } = await verified(this.#machine.disk.tree());
    await this.#serve();
    assert.equal(this.#known.events.length, events_checked, "verify sees what the service shows");
    const here = this.#here();
    await reopen(here);
    await compare(here);
  }
}

/** How the line of an event begins, and of no other. */
function beginning({ event_id }: CommittedEvent): string {
  return `{"event_id":"${event_id}"`;
}
