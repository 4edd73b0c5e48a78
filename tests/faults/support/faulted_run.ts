/**
 * A service twice, a sealing and a service again, each a process of its own on one machine, of
 * which one operation fails. What clients, followers and readers are told is checked as it goes.
 */
import assert from "node:assert/strict";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import type { EventLogService } from "../../../src/service/event_log.ts";
import { FOLLOW_ALL, type FollowRecord, parseRecord } from "../../support/follow_records.ts";
import type { Mutation } from "../../support/history.ts";
import { statusOf } from "../../support/outcome.ts";
import { seededRandom } from "../../../tools/support/random.ts";
import { type Operation, SimulatedDisk } from "../../support/simulated_disk.ts";
import { ALL_STREAMS, replayAll } from "../../support/stream_listing.ts";
import { TEST_TIME_MS } from "../../support/test_log.ts";
import { openWatchedLog, openWatchedService } from "../../support/watched_log.ts";
import { type Base, steadyTime } from "./crash_session.ts";
import { type FaultPlan, isNoRoomFault } from "./fault_plans.ts";
import { answerTo, submittedEvent } from "../../support/submitted.ts";
import type { Ledger } from "./ledger.ts";

/** What a process was doing. */
export type Phase =
  | `${"first" | "second" | "third"} ${
    | "start"
    | "mutations"
    | "reads"
    | "shutdown"}`
  | "seal";

/** Chooses how an operation fails; null when it works. */
export type Chooser = (operation: Operation, number: number) => FaultPlan | null;

/** Where the fault struck. */
export interface Strike {
  operation: Operation;
  plan: FaultPlan;
  phase: Phase;
}

/** How the service ends that met the fault. */
export type Ending = "close" | "kill";

export class FaultedRun {
  readonly disk: SimulatedDisk;
  readonly ledger: Ledger;
  readonly #choose: Chooser;
  readonly #ending: Ending;
  /** Called when a process is over. */
  readonly #onExit: () => void;
  readonly #time = steadyTime(TEST_TIME_MS + 1_000_000, seededRandom(3));
  #strike: Strike | null = null;
  #hasStruckTwice = false;
  #phase: Phase = "first start";
  #operations = 0;
  #answers: string[] = [];
  /** What was submitted to processes before: of that, anything may be there. */
  #submittedBefore = 0;

  constructor(base: Base, choose: Chooser, ending: Ending, onExit: (run: FaultedRun) => void) {
    this.disk = new SimulatedDisk(base.tree);
    this.ledger = base.ledger.copy();
    this.#choose = choose;
    this.#ending = ending;
    this.#onExit = () => onExit(this);
    this.disk.hook = (operation) => this.#fail(operation);
  }

  /** Null when nothing has failed. */
  get strike(): Strike | null {
    return this.#strike;
  }

  async run(): Promise<void> {
    await this.#serve("first");
    await this.#serve("second");
    await this.#seal();
    await this.#serve("third");
  }

  #fail(operation: Operation) {
    this.#operations += 1;
    if (this.#strike === null) {
      const plan = this.#choose(operation, this.#operations);
      if (plan === null) return null;
      this.#strike = { operation, plan, phase: this.#phase };
      return plan.fault;
    }
    const { plan, phase } = this.#strike;
    if (phase !== this.#phase) return null;
    if (plan.next?.kind === operation.kind && !this.#hasStruckTwice) {
      this.#hasStruckTwice = true;
      return plan.next.fault;
    }
    return plan.stays && operation.kind === "write" ? plan.fault : null;
  }

  async #serve(turn: "first" | "second" | "third"): Promise<void> {
    this.#phase = `${turn} start`;
    this.#submittedBefore = this.ledger.calls.length;
    const service = await this.#try(() =>
      openWatchedService({ storage: this.disk, ...this.#time, report: () => {} })
    );
    if (service === null) return;
    const records = collect(service);
    this.#phase = `${turn} mutations`;
    this.#answers = [];
    await this.#mutate(service);
    this.#assertAnswers();
    // Followers are told, before anything else ends.
    if (this.#answers.includes("writer_poisoned")) await records;
    this.#phase = `${turn} reads`;
    await this.#read(service);
    this.#phase = `${turn} shutdown`;
    if (this.#ending === "close") {
      await this.#try(() => service.close());
    } else {
      service.endFollowers();
    }
    await this.#assertFollowed(await records);
    this.#onExit();
  }

  async #mutate(service: EventLogService): Promise<void> {
    const number = this.ledger.calls.length;
    const append = (source: string, place: number): Mutation => {
      const events = [submittedEvent("s-0", place), submittedEvent("s-1", "x".repeat(700))];
      return { kind: "append", batch: { source, batch_id: `f-${number + place}`, events } };
    };
    const source = `short-${number}`;
    const conditioned: Mutation = {
      kind: "append",
      batch: {
        source: `new-${number}`,
        batch_id: `f-${number + 6}`,
        events: [submittedEvent("s-0")],
        stream_precondition: { stream: "s-0", expected_frontier: null },
      },
    };
    await this.#submit(service, [append("shop", 1)]);
    await this.#submit(service, [append("shop", 2), append("crm", 3)]);
    await this.#submit(service, [append(source, 4), { kind: "retire", source }]);
    await this.#submit(service, [conditioned]);
    await this.#submitSealed(service);
    await this.#submit(service, [append("crm", 7)]);
  }

  async #submit(service: EventLogService, mutations: readonly Mutation[]): Promise<void> {
    const answers = mutations.map(async (mutation) => {
      try {
        return String(statusOf(await this.ledger.submit(service, mutation)));
      } catch (error) {
        assert.match(String(error), /injected/);
        return "failed";
      }
    });
    this.#answers.push(...await Promise.all(answers));
  }

  /** A batch that is in a segment, once more. */
  async #submitSealed(service: EventLogService): Promise<void> {
    const { mutation, outcome } = this.ledger.calls[0]!;
    const answer = await answerTo(service, mutation).catch((error) => {
      assert.match(String(error), /injected/);
      return { status: 500, body: { error: "failed" } };
    });
    if (answer.status === 200) {
      assert.deepEqual(answer.body, { ...outcome!.body, status: "duplicate" });
    }
    this.#answers.push(String(statusOf(answer)));
  }

  /** The answers of contract section 7. */
  #assertAnswers(): void {
    const told = JSON.stringify([this.#strike, this.#answers]);
    const poisonedAt = this.#answers.indexOf("writer_poisoned");
    const expected = this.#expectedAnswer();
    const others = new Set(["committed", "duplicate", "retired"]);
    const failed = this.#answers.filter((answer) => !others.has(answer));
    // A retirement of a source whose batch was not taken.
    const errors = failed.filter((answer) => answer !== "source_not_found");
    assert.deepEqual(
      [...new Set(errors)],
      expected === null || errors.length === 0 ? [] : [expected],
      told,
    );
    if (expected === "storage_full" || expected === "writer_poisoned") {
      assert.ok(errors.length > 0, told);
    }
    if (poisonedAt >= 0) {
      assert.ok(this.#answers.slice(poisonedAt).every((a) => a === "writer_poisoned"), told);
    } else if (this.#strike?.plan.stays !== true) {
      // Those of one commit; the others find room.
      assert.ok(errors.length <= 2, told);
    }
  }

  /** The error that mutations of this phase may be answered with; null for none. */
  #expectedAnswer(): string | null {
    if (this.#strike?.phase !== this.#phase) return null;
    const { operation, plan } = this.#strike;
    if (operation.kind !== "write" && operation.kind !== "sync") return "failed";
    const isUndone = operation.kind === "write" && isNoRoomFault(plan.fault) &&
      plan.next === undefined;
    return isUndone ? "storage_full" : "writer_poisoned";
  }

  /** Readers go on, and see what was acknowledged and nothing else. */
  async #read(service: EventLogService): Promise<void> {
    const first = await this.#try(() => replayAll(service));
    const events = first ?? await replayAll(service);
    this.#assertShown(events);
    const page = await this.#try(() => service.streams(ALL_STREAMS)) ??
      await service.streams(ALL_STREAMS);
    const counted = page.streams.reduce((sum, { event_count }) => sum + event_count, 0);
    assert.equal(counted, events.length);
  }

  /** The service is shut down, and the command `seal` does its work. */
  async #seal(): Promise<void> {
    this.#phase = "seal";
    const storage = this.disk;
    const log = await this.#try(() => openWatchedLog({ storage, ...this.#time, report() {} }));
    if (log === null) return;
    await this.#try(() => log.seal(() => {}, { bounds: { events: 6, bytes: 100_000 } }));
    await this.#try(() => log.close());
    this.#onExit();
  }

  /** What fails may only fail by the fault, and in the phase that it strikes. */
  async #try<T>(action: () => Promise<T>): Promise<T | null> {
    try {
      return await action();
    } catch (error) {
      assert.match(String(error), /injected/);
      assert.equal(this.#strike?.phase, this.#phase, "what failed before harms nothing now");
      return null;
    }
  }

  /** All that was acknowledged, and nothing that this process has not acknowledged. */
  #assertShown(events: readonly CommittedEvent[]): void {
    this.ledger.assertHeldBy(events);
    this.ledger.assertAcknowledged(events, this.#submittedBefore);
  }

  #assertFollowed(records: readonly FollowRecord[]): void {
    const followed = records.flatMap((record) => record.type === "events" ? record.events : []);
    const end = records.at(-1)!;
    assert.equal(end.type, "end");
    assert.equal(new Set(followed.map((event) => event.event_id)).size, followed.length);
    this.ledger.assertAcknowledged(followed, this.#submittedBefore);
    const isPoisoned = this.#answers.includes("writer_poisoned");
    if (end.type !== "end" || end.reason === "replay_failed") {
      assert.ok(this.#strike !== null);
    } else {
      // A process that is killed tells nothing; here it stands for the shutdown.
      assert.ok(isPoisoned ? end.reason === "writer_poisoned" : end.reason === "shutdown");
      if (isPoisoned) this.#assertShown(followed);
    }
  }
}

async function collect(service: EventLogService): Promise<FollowRecord[]> {
  const follow = service.follow(FOLLOW_ALL);
  const records: FollowRecord[] = [];
  for (let bytes = await follow.next(); bytes !== null; bytes = await follow.next()) {
    records.push(parseRecord(bytes));
  }
  return records;
}
