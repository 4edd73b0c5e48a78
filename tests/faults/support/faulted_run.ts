/**
 * Runs the service twice, then a seal, then the service again, each as a separate process on one
 * machine. One operation fails. Responses and reads are checked throughout.
 */
import assert from "node:assert/strict";
import { seededRandom } from "../../../tools/support/random.ts";
import { statusOf } from "../../support/outcome.ts";
import type { Operation } from "../../support/simulated_disk.ts";
import { ALL_STREAMS, replayText } from "../../support/stream_listing.ts";
import { type Mutation, submittedEvent } from "../../support/submitted.ts";
import { TEST_TIME_MS } from "../../support/test_log.ts";
import { type FaultPlan, isNoRoomFault } from "./fault_plans.ts";
import { type Base, LogRun } from "./log_run.ts";

/** A fault that occurred: the failed operation, the plan and the phase. */
export interface Strike {
  operation: Operation;
  plan: FaultPlan;
  phase: string;
}

/** Whether the service in which the fault occurred is closed or killed. */
export type Ending = "close" | "kill";

const SEGMENT_BOUNDS = { events: 6, bytes: 100_000 };

export class FaultedRun extends LogRun {
  /** Null until an operation has failed. */
  strike: Strike | null = null;
  readonly #choose: (operation: Operation, number: number) => FaultPlan | null;
  readonly #ending: Ending;
  /** Called when a process exits. */
  readonly #onExit: (run: FaultedRun) => void;
  #phase = "first startup";
  #operations = 0;

  /** @param choose returns the fault for an operation, numbered from 1, or null for none. */
  constructor(
    base: Base,
    choose: (operation: Operation, number: number) => FaultPlan | null,
    ending: Ending,
    onExit: (run: FaultedRun) => void,
  ) {
    super(seededRandom(3), base);
    this.machine.changeClock(() => TEST_TIME_MS + 1_000_000);
    this.#choose = choose;
    this.#ending = ending;
    this.#onExit = onExit;
  }

  async run(): Promise<void> {
    await this.#serve("first");
    await this.#serve("second");
    this.#begin("seal");
    await this.seal(SEGMENT_BOUNDS);
    this.#onExit(this);
    await this.#serve("third");
  }

  /** Begins a phase in which failures from earlier phases have no further effect. */
  #begin(phase: string): void {
    this.#phase = phase;
    this.machine.endProcess();
    if (this.strike !== null) return;
    this.machine.arm((operation) => {
      this.#operations += 1;
      const plan = this.#choose(operation, this.#operations);
      if (plan !== null) this.strike = { operation, plan, phase };
      return plan;
    });
  }

  async #serve(turn: string): Promise<void> {
    this.#begin(`${turn} startup`);
    if (!await this.serve()) return;
    this.follow();
    this.#begin(`${turn} mutations`);
    await this.#mutate();
    this.#begin(`${turn} reads`);
    await this.#read();
    // A follower that could not read has ended with `replay_failed`.
    await this.follower!.catchUp(this.known.text, () => this.strike !== null);
    this.#begin(`${turn} shutdown`);
    // A real kill sends nothing. Here, it ends followers as a shutdown does.
    await this.end(this.#ending === "close" ? "closed" : "killed");
    await this.follower!.ended(this.isPoisoned ? "writer_poisoned" : "shutdown");
    if (this.follower!.reason === "replay_failed") assert.ok(this.strike !== null);
    this.#onExit(this);
  }

  async #mutate(): Promise<void> {
    const number = this.known.mutations.length;
    const append = (source: string, place: number, more = {}): Mutation => {
      const events = [submittedEvent("s-0", place), submittedEvent("s-1", "x".repeat(700))];
      return {
        kind: "append",
        batch: { source, batch_id: `f-${number + place}`, events, ...more },
      };
    };
    const source = `short-${number}`;
    const stream_precondition = { stream: "s-0", expected_frontier: null };
    const events = [submittedEvent("s-0")];
    const turns: Mutation[][] = [
      [append("shop", 1)],
      [append("shop", 2), append("crm", 3)],
      [append(source, 4), { kind: "retire", source }],
      [append(`new-${number}`, 6, { events, stream_precondition })],
      // This batch is sealed.
      [this.known.mutations[0]!],
      [append("crm", 7)],
    ];
    const answers: string[] = [];
    for (const mutations of turns) {
      answers.push(...(await this.submit(mutations)).map((outcome) => String(statusOf(outcome))));
    }
    this.#assertAnswers(answers);
  }

  /** Checks the error responses that contract section 7 requires. */
  #assertAnswers(answers: readonly string[]): void {
    const told = JSON.stringify([this.strike, answers]);
    const poisonedAt = answers.indexOf("writer_poisoned");
    const expected = this.#expectedAnswer();
    // Retiring a source whose batch was rejected returns source_not_found.
    const others = new Set(["committed", "duplicate", "retired", "source_not_found"]);
    const errors = answers.filter((answer) => !others.has(answer));
    assert.ok(errors.every((answer) => answer === expected), told);
    if (expected === "storage_full" || expected === "writer_poisoned") {
      assert.ok(errors.length > 0, told);
    }
    if (poisonedAt >= 0) {
      assert.ok(answers.slice(poisonedAt).every((a) => a === "writer_poisoned"), told);
    } else if (this.strike?.plan.stays !== true) {
      // Only the batches in one commit fail; later ones do not run out of space.
      assert.ok(errors.length <= 2, told);
    }
  }

  /** The error that mutations in this phase may return, or null for none. */
  #expectedAnswer(): string | null {
    if (this.strike?.phase !== this.#phase) return null;
    const { operation, plan } = this.strike;
    if (operation.kind !== "write" && operation.kind !== "sync") return "failed";
    const isUndone = operation.kind === "write" && isNoRoomFault(plan.fault) &&
      plan.next === undefined;
    return isUndone ? "storage_full" : "writer_poisoned";
  }

  /** Asserts that readers continue and see exactly what was acknowledged. */
  async #read(): Promise<void> {
    const service = this.service!;
    assert.equal(await this.machine.again(() => replayText(service)), this.known.text);
    const { streams } = await this.machine.again(() => service.streams(ALL_STREAMS));
    assert.deepEqual(streams, this.known.model.streams());
  }
}
