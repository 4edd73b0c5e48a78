/**
 * A machine with a simulated disk whose operations fail and whose power goes when a test says so,
 * and the processes that run on it one after the other.
 */
import assert from "node:assert/strict";
import type { SegmentBounds } from "../../../src/log/segment/segment_writer.ts";
import type { EventLogService } from "../../../src/service/event_log.ts";
import { type Random, randomInteger } from "../../../tools/support/random.ts";
import { pause } from "../../support/pause.ts";
import { anyOf, type CrashChoice } from "../../support/simulated_crash.ts";
import {
  type Fault,
  type Operation,
  SimulatedDisk,
  type Tree,
} from "../../support/simulated_disk.ts";
import { TEST_TIME_MS } from "../../support/test_log.ts";
import { openWatchedLog, openWatchedService } from "../../support/watched_log.ts";
import type { FaultPlan } from "./fault_plans.ts";

/** Chooses how an operation fails; null when it works. */
export type Chooser = (operation: Operation) => FaultPlan | null;

/** Chooses at an operation what a crash leaves; null when the power stays. */
export type PowerCut = (operation: Operation) => CrashChoice | null;

export class HistoryMachine {
  readonly #random: Random;
  #disk: SimulatedDisk;
  #nowMs = TEST_TIME_MS;
  /** Asked until an operation fails. */
  #choose: Chooser | null = null;
  /** The last that has failed in this process. */
  #struck: FaultPlan | null = null;
  #hasFailed = false;
  #cutPower: PowerCut | null = null;
  /** What the crash left, from then on. */
  #left: SimulatedDisk | null = null;
  /** Called before each operation while there is power. */
  watch: ((operation: Operation) => Promise<void>) | null = null;
  /** How long an operation takes at most, in turns of other work. */
  operationTurnsMax = 0;

  /** @param tree what the disk holds. */
  constructor(random: Random, tree?: Tree) {
    this.#random = random;
    this.#disk = this.#attached(new SimulatedDisk(tree));
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

  /** Lets an operation fail; what failed before works again. */
  arm(choose: Chooser): void {
    this.#choose = choose;
    this.#struck = null;
  }

  /** From now on all works, while the power stays. */
  disarm(): void {
    this.#choose = null;
    this.#struck = null;
  }

  /** Lets the power go at an operation. */
  cutPower(cut: PowerCut): void {
    this.#cutPower = cut;
  }

  /** Sets the clock, which stands until then. */
  changeClock(change: (nowMs: number) => number): void {
    this.#nowMs = change(this.#nowMs);
  }

  /** The power goes now, unless it has, and comes back. */
  restorePower(): void {
    this.#disk = this.#attached(this.#left ?? this.#disk.crash(anyOf(this.#random)));
    this.#left = null;
    this.endProcess();
  }

  /** A process, or a phase of one, is over: what it met is no matter of the next one. */
  endProcess(): void {
    this.disarm();
    this.#hasFailed = false;
    this.#cutPower = null;
  }

  /** A new process with the service; null when it failed to start. */
  async start(report: (line: string) => void = () => {}): Promise<EventLogService | null> {
    const options = { storage: this.#disk, ...this.#time(), report };
    return await this.attempt(() => openWatchedService(options));
  }

  /** A process with the command `seal`. */
  async seal(bounds: SegmentBounds): Promise<void> {
    const options = { storage: this.#disk, ...this.#time(), report() {} };
    const log = await this.attempt(() => openWatchedLog(options));
    if (log === null) return;
    if (log.hasUnsealed) await this.attempt(() => log.seal(() => {}, { bounds }));
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

  /** What fails once by the disk works the next time. */
  async again<T>(action: () => Promise<T>): Promise<T> {
    return await this.attempt(action) ?? await action();
  }

  #time() {
    return {
      clockMs: () => this.#nowMs,
      randomBytes: (into: Uint8Array) => {
        for (let i = 0; i < into.length; i++) into[i] = randomInteger(this.#random, 0, 255);
      },
    };
  }

  #attached(disk: SimulatedDisk): SimulatedDisk {
    disk.hook = async (operation) => {
      if (this.operationTurnsMax > 0) await pause(this.#random, this.operationTurnsMax);
      if (disk === this.#disk && !this.isOff) await this.watch?.(operation);
      return disk === this.#disk ? this.#operate(operation) : { errno: "EIO" };
    };
    return disk;
  }

  #operate(operation: Operation): Fault | null {
    const choice = this.#left === null ? this.#cutPower?.(operation) ?? null : null;
    if (choice !== null) this.#left = this.#disk.crash(choice);
    if (this.#left !== null) return { errno: "EIO" };
    return this.#struck === null ? this.#strike(operation) : this.#strikeAgain(operation);
  }

  #strike(operation: Operation): Fault | null {
    const plan = this.#choose?.(operation) ?? null;
    if (plan === null) return null;
    this.#choose = null;
    this.#hasFailed = true;
    this.#struck = { ...plan };
    return plan.fault;
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
