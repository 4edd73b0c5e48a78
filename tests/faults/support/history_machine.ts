/**
 * A machine with a simulated disk whose operations fail and whose power goes when a long history
 * says so, and the processes that run on it one after the other.
 */
import assert from "node:assert/strict";
import type { EventLogService } from "../../../src/service/event_log.ts";
import { type Random, randomInteger, randomItem } from "../../../tools/support/random.ts";
import { anyOf } from "../../support/simulated_crash.ts";
import {
  changesDisk,
  type Fault,
  type Operation,
  type OperationKind,
  SimulatedDisk,
} from "../../support/simulated_disk.ts";
import { TEST_TIME_MS } from "../../support/test_log.ts";
import { openWatchedLog, openWatchedService } from "../../support/watched_log.ts";
import { type FaultPlan, plansFor } from "./fault_plans.ts";

/** The next fault: at the `count`th operation from now on of these kinds; of any if absent. */
interface Armed {
  count: number;
  kinds?: readonly OperationKind[];
}

/** Where a segment ends; few, since each costs every start and every new batch some time. */
const SEGMENT_EVENTS = [120, 120, 1000];

export class HistoryMachine {
  readonly #random: Random;
  #disk = new SimulatedDisk();
  #nowMs = TEST_TIME_MS;
  #armed: Armed | null = null;
  /** The last that has failed in this process. */
  #struck: FaultPlan | null = null;
  #hasFailed = false;
  /** How many more changes of the disk there are until the power goes. */
  #changesLeft = Infinity;
  /** What the crash left, from then on. */
  #left: SimulatedDisk | null = null;

  constructor(random: Random) {
    this.#random = random;
    this.#disk.hook = (operation) => this.#operate(operation);
  }

  get disk(): SimulatedDisk {
    return this.#disk;
  }

  /** Whether an operation of this process has failed. */
  get hasFailed(): boolean {
    return this.#hasFailed || this.#left !== null;
  }

  get isOff(): boolean {
    return this.#left !== null;
  }

  /** Lets an operation fail, soon; what failed before works again. */
  arm(armed: Armed): void {
    this.#armed = armed;
    this.#struck = null;
  }

  /** From now on all works, while the power stays. */
  disarm(): void {
    this.#armed = null;
    this.#struck = null;
  }

  /** Lets the power go at the `change`th change of the disk from now on. */
  crashAt(change: number): void {
    this.#changesLeft = change;
  }

  /** Sets the clock, which stands until then. */
  changeClock(change: (nowMs: number) => number): void {
    this.#nowMs = change(this.#nowMs);
  }

  /** The power goes now, unless it has, and comes back. */
  restorePower(): void {
    this.#disk = this.#left ?? this.#disk.crash(anyOf(this.#random));
    this.#disk.hook = (operation) => this.#operate(operation);
    this.#left = null;
    this.endProcess();
  }

  /** A process is over: what it met is no matter of the next one. */
  endProcess(): void {
    this.disarm();
    this.#hasFailed = false;
    this.#changesLeft = Infinity;
  }

  /** A new process with the service; null when it failed to start. */
  async start(report: (line: string) => void): Promise<EventLogService | null> {
    const options = { storage: this.#disk, ...this.#time(), report };
    return await this.attempt(() => openWatchedService(options));
  }

  /** A process with the command `seal`; its segments have sizes of any kind. */
  async seal(): Promise<void> {
    const options = { storage: this.#disk, ...this.#time(), report() {} };
    const log = await this.attempt(() => openWatchedLog(options));
    if (log === null) return;
    const bounds = { events: randomItem(this.#random, SEGMENT_EVENTS), bytes: 100_000 };
    await this.attempt(() => log.seal(() => {}, { bounds }));
    await this.attempt(() => log.close());
  }

  /** Null when it failed by what was done to the disk; it must not fail otherwise. */
  async attempt<T>(action: () => Promise<T>): Promise<T | null> {
    try {
      return await action();
    } catch (error) {
      assert.ok(this.hasFailed, String((error as Error).stack));
      assert.match(String(error), /injected/);
      return null;
    }
  }

  #time() {
    return {
      clockMs: () => this.#nowMs,
      randomBytes: (into: Uint8Array) => {
        for (let i = 0; i < into.length; i++) into[i] = randomInteger(this.#random, 0, 255);
      },
    };
  }

  #operate(operation: Operation): Fault | null {
    if (this.#left !== null) return { errno: "EIO" };
    if (changesDisk(operation) && --this.#changesLeft <= 0) {
      this.#left = this.#disk.crash(anyOf(this.#random));
      return { errno: "EIO" };
    }
    return this.#struck === null ? this.#strike(operation) : this.#strikeAgain(operation);
  }

  #strike(operation: Operation): Fault | null {
    const armed = this.#armed;
    if (armed === null || armed.kinds?.includes(operation.kind) === false) return null;
    armed.count -= 1;
    if (armed.count > 0) return null;
    this.#armed = null;
    this.#hasFailed = true;
    this.#struck = { ...randomItem(this.#random, plansFor(operation)) };
    return this.#struck.fault;
  }

  #strikeAgain({ kind }: Operation): Fault | null {
    const struck = this.#struck!;
    if (struck.next?.kind === kind) {
      const { fault } = struck.next;
      delete struck.next;
      return fault;
    }
    return struck.stays === true && kind === "write" ? struck.fault : null;
  }
}
