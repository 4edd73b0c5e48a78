/**
 * A long history on an unreliable machine. Clients submit, read and follow, operators restart and
 * seal, the clock changes, and disk operations fail. Each generation ends in a power failure,
 * sometimes followed by another one during recovery. All observations are checked against the
 * known history.
 */
import assert from "node:assert/strict";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import type { EventLogService } from "../../../src/service/event_log.ts";
import { type Outcome, statusOf } from "../../support/outcome.ts";
import { type Random, randomInteger, randomItem } from "../../../tools/support/random.ts";
import { RandomMutations } from "../../support/random_mutations.ts";
import { anyOf } from "../../support/simulated_crash.ts";
import { changesDisk, type OperationKind } from "../../support/simulated_disk.ts";
import { ALL_STREAMS, replayText } from "../../support/stream_listing.ts";
import { answerTo, type Mutation } from "../../support/submitted.ts";
import { joinPieces, TEST_TIME_MS } from "../../support/test_log.ts";
import { assertDurable, reopen, REPAIR_REPORT, verified } from "./crash_check.ts";
import { plansFor } from "./fault_plans.ts";
import { LogRun } from "./log_run.ts";

const GENERATIONS = 4;
const BURST_MAX = 4;
/** Probability that a burst contains a duplicate mutation, or two batches with the same id. */
const TWINS = 0.3;
/** Probability that a burst, twice as long, consists mostly of conditional batches. */
const CONDITIONAL = 0.4;
/** Maximum delays of clients and of disk operations, in event loop turns. */
const CLIENT_TURNS_MAX = 60;
const OPERATION_TURNS_MAX = 12;
/** Segment sizes, in events. Smaller segments would slow every startup and every new batch. */
const SEGMENT_EVENTS = [120, 120, 1000];
/** Maximum backlog of a new follower, unless it follows from the beginning. */
const FOLLOWED_MAX = 30;
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;
/** Changes to the clock. A machine without a clock starts at the Unix epoch. */
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

/** Number of mutations to resubmit. */
const REPEATED = 12;
const ANCHORS = 2;

/** Approximate number of disk changes within which the power fails. */
const RECOVERY_CHANGES_MAX = 8;
const CHANGES_MAX = { submissions: 5, shutdown: 3, seal: 30 };

/** Number of occurrences by name. */
export type Tally = Record<string, number>;

/** Probability of each step, per mille. */
const STEPS = {
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
type Step = keyof typeof STEPS;

export class HistoryRun extends LogRun {
  readonly #steps: number;
  readonly #tally: Tally;
  readonly #mutations: RandomMutations;

  /** @param steps number of steps in each generation. */
  constructor(random: Random, steps: number, tally: Tally) {
    super(random);
    this.#steps = steps;
    this.#tally = tally;
    this.machine.operationTurnsMax = OPERATION_TURNS_MAX;
    this.#mutations = new RandomMutations(random);
    this.known.onCommit = (batch) => this.#mutations.learn(batch);
  }

  async run(): Promise<void> {
    await this.#start();
    for (let generation = 0; generation < GENERATIONS; generation++) {
      for (let step = 0; step < this.#steps; step++) await this.#step();
      if (this.isPoisoned) await this.#restart("restart");
      await this.#compareWithReopened();
      await this.#crash();
      await this.#recover();
    }
    await this.end("killed");
  }

  #count(what: string): void {
    this.#tally[what] = (this.#tally[what] ?? 0) + 1;
  }

  async #step(): Promise<void> {
    if (this.isPoisoned && this.random() < 0.5) {
      return await this.#restart(randomItem(this.random, ["restart", "kill"] as const));
    }
    const step = this.#chooseStep();
    this.#count(step);
    switch (step) {
      case "submit":
        return void await this.submit([this.#mutations.next()]);
      case "repeat":
        return void await this.submit([this.#mutations.before()]);
      case "burst":
        return await this.#burst(randomInteger(this.random, 2, BURST_MAX));
      case "read":
        return await this.#read();
      case "fault":
        return this.#arm();
      case "restart":
      case "kill":
      case "seal":
        return await this.#restart(step);
      case "clock":
        return this.machine.changeClock(randomItem(this.random, CLOCK_CHANGES));
    }
  }

  #chooseStep(): Step {
    let left = this.random() * 1000;
    for (const [step, weight] of Object.entries(STEPS)) {
      left -= weight;
      if (left < 0) return step as Step;
    }
    return "submit";
  }

  #arm(): void {
    const kinds = this.random() < 0.7 ? (["write", "sync"] as const) : (["read"] as const);
    this.#failNth(randomInteger(this.random, 1, 3), kinds);
  }

  /** Makes the `nth` subsequent operation fail. Counts only `kinds`, or all kinds by default. */
  #failNth(nth: number, kinds?: readonly OperationKind[]): void {
    let left = nth;
    this.machine.arm((operation) => {
      if (kinds?.includes(operation.kind) === false || --left > 0) return null;
      return randomItem(this.random, plansFor(operation));
    });
  }

  /** Cuts the power at the `nth` subsequent disk change. */
  #crashAt(nth: number): void {
    let left = nth;
    this.machine.cutPower((operation) =>
      changesDisk(operation) && --left <= 0 ? anyOf(this.random) : null
    );
  }

  /**
   * Submits from several clients at once, sometimes with a duplicate or a conflicting batch, and
   * sometimes with preconditions on one source, some of which share a stream.
   */
  async #burst(count: number): Promise<void> {
    const source = randomItem(this.random, this.#mutations.sources);
    const isConditional = this.random() < CONDITIONAL;
    const mutations = Array.from(
      { length: isConditional ? 2 * count : count },
      () =>
        isConditional && this.random() < 0.6
          ? this.#mutations.conditional(source)
          : this.#mutations.next(),
    );
    if (this.random() < TWINS) mutations.push(this.#mutations.twinOf(mutations[0]!));
    const turnsMax = this.random() < 0.5 ? 0 : CLIENT_TURNS_MAX;
    await this.submit(mutations, { turnsMax });
  }

  override async submit(
    mutations: readonly Mutation[],
    options?: Parameters<LogRun["submit"]>[1],
  ): Promise<Outcome[]> {
    const outcomes = await super.submit(mutations, options);
    for (const outcome of outcomes) this.#count(String(statusOf(outcome)));
    return outcomes;
  }

  /** Asserts that a page equals the result of filtering all events. */
  async #read(): Promise<void> {
    const { random, known: { events } } = this;
    const after = random() < 0.8 ? randomItem(random, events)?.event_id : undefined;
    const { source, stream } = randomItem(random, events) ?? {};
    const filter = { ...(random() < 0.5 && { source }), ...(random() < 0.5 && { stream }) };
    const limitEvents = randomItem(random, [1, 10, 1000]);
    const isWanted = (event: CommittedEvent) =>
      (after === undefined || event.event_id > after) &&
      (filter.source ?? event.source) === event.source &&
      (filter.stream ?? event.stream) === event.stream;
    const query = { after, filter, limitEvents } as Parameters<EventLogService["replay"]>[0];
    const text = await this.machine.again(() => joinPieces(this.service!.replay(query)));
    const expected = events.filter(isWanted).slice(0, limitEvents);
    assert.ok(text === expected.map((event) => JSON.stringify(event)).join(","), "a page");
  }

  /** Ends the process, cleanly or not, optionally seals the log, and starts a new process. */
  async #restart(how: "restart" | "kill" | "seal"): Promise<void> {
    await this.end(how === "kill" ? "killed" : "closed");
    if (how === "seal") {
      if (this.random() < 0.4) this.#failNth(randomInteger(this.random, 1, 60));
      await this.#seal();
      if (this.machine.hasFailed) this.#count("seal failed");
      if (!this.machine.isOff) this.machine.endProcess();
    }
    await this.#start();
  }

  /** Seals the log into segments of varying sizes. */
  async #seal(): Promise<void> {
    await this.seal({ events: randomItem(this.random, SEGMENT_EVENTS), bytes: 100_000 });
  }

  /** Starts the service, with retries, and checks what it returns. */
  async #start(): Promise<void> {
    if (this.random() < 0.2) this.#failNth(randomInteger(this.random, 1, 40));
    const report = (line: string) => {
      if (line.startsWith("tail.ndjson: removed")) assert.match(line, REPAIR_REPORT);
    };
    let service = await this.machine.start(report);
    while (service === null) {
      this.#count("startup failed");
      this.machine.endProcess();
      service = await this.machine.start(report);
    }
    this.machine.endProcess();
    assertDurable(this.machine.disk);
    await this.take(service);
    this.follower?.check(this.known.text);
    const isAtStart = this.random() < 0.1;
    const last = this.known.events.length - 1;
    this.follow(isAtStart ? -1 : last - randomInteger(this.random, 0, FOLLOWED_MAX));
  }

  /** Asserts that the running service has the same state as a new one on the same files. */
  async #compareWithReopened(): Promise<void> {
    this.machine.arm(null);
    await this.follower!.catchUp(this.known.text, () => this.machine.hasFailed);
    if (this.follower!.reason === "replay_failed") this.#count("replay_failed");
    await this.#compare([this.service!, await reopen(this.machine.disk.tree())]);
  }

  /** Compares each service with the model, and the services' listings with each other. */
  async #compare(services: readonly EventLogService[]): Promise<void> {
    const { known, random } = this;
    const anchors = Array.from(
      { length: ANCHORS },
      () => randomItem(random, known.events)?.event_id,
    );
    const repeated = [
      ...Array.from({ length: REPEATED }, () => this.#mutations.before()),
      ...this.#mutations.sources.map((source): Mutation => ({ kind: "retire", source })),
    ];
    const seen = await Promise.all(services.map(async (log) => {
      assert.ok(await replayText(log) === known.text, "all events exist, byte for byte");
      assert.deepEqual((await log.streams(ALL_STREAMS)).streams, known.model.streams());
      for (const mutation of repeated) {
        const expected = known.model.answer(mutation);
        if (expected !== null) assert.deepEqual(await answerTo(log, mutation), expected);
      }
      return await Promise.all(anchors.map((through) => log.streams({ ...ALL_STREAMS, through })));
    }));
    for (const other of seen) assert.deepEqual(other, seen[0], "streams at an event");
  }

  /** Cuts the power while the service runs, during its shutdown, or during a seal. */
  async #crash(): Promise<void> {
    const { random } = this;
    const during = randomItem(random, ["submissions", "submissions", "shutdown", "seal"] as const);
    if (during === "seal") await this.end("closed");
    this.#crashAt(randomInteger(random, 1, CHANGES_MAX[during]));
    if (during === "submissions") {
      await this.#burst(BURST_MAX);
      await this.#burst(BURST_MAX);
      await this.end("killed");
    } else if (during === "shutdown") {
      await this.end("closed");
    } else {
      await this.#seal();
    }
    this.#count(`crash in ${this.machine.isOff ? during : "between"}`);
    this.machine.restorePower();
  }

  /** Asserts that readers accept what the crash left, and that recovery survives another crash. */
  async #recover(): Promise<void> {
    if (this.random() < 0.5) {
      this.#crashAt(randomInteger(this.random, 1, RECOVERY_CHANGES_MAX));
      const service = await this.machine.start();
      service?.endFollowers();
      if (this.machine.isOff) this.#count("crash in recovery");
      this.machine.restorePower();
    }
    const { events_checked } = await verified(this.machine.disk.tree());
    await this.#start();
    assert.equal(this.known.events.length, events_checked, "verify sees what the service shows");
    await reopen(this.machine.disk.tree());
    await this.#compare([this.service!]);
  }
}
