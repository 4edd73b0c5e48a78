/**
 * A machine with a simulated disk, and the processes that run on it one after another. Operations
 * and power fail on request.
 */
import assert from "node:assert/strict";
import type { SegmentBounds } from "../../../src/log/segment/segment_writer.ts";
import { openLog } from "../../../src/log/log.ts";
import { type EventLogService, openEventLog } from "../../../src/service/event_log.ts";
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
import type { FaultPlan } from "./fault_plans.ts";

/** Chooses how an operation fails. @returns null if it succeeds. */
export type Chooser = (operation: Operation) => FaultPlan | null;

/** Chooses what survives a power failure at an operation. @returns null if the power stays on. */
export type PowerCut = (operation: Operation) => CrashChoice | null;

export class HistoryMachine {
  readonly #random: Random;
  #disk: SimulatedDisk;
  #nowMs = TEST_TIME_MS;
  /** Called for each operation until one fails. */
  #choose: Chooser | null = null;
  /** The last fault that occurred in this process. */
  #struck: FaultPlan | null = null;
  #hasFailed = false;
  #cutPower: PowerCut | null = null;
  /** The disk as the power failure left it; null while the power is on. */
  #left: SimulatedDisk | null = null;
  /** Called before each operation while the power is on. */
  watch: ((operation: Operation) => Promise<void>) | null = null;
  /** Maximum duration of an operation, in event loop turns. */
  operationTurnsMax = 0;

  /** @param tree initial content of the disk. */
  constructor(random: Random, tree?: Tree) {
    this.#random = random;
    this.#disk = this.#attached(new SimulatedDisk(tree));
  }

  get disk(): SimulatedDisk {
    return this.#disk;
  }

  /** Whether an operation in this process has failed. */
  get hasFailed(): boolean {
    return this.#hasFailed || this.#left !== null;
  }

  get isOff(): boolean {
    return this.#left !== null;
  }

  /** Schedules a fault and clears the previous one. Null makes all operations succeed. */
  arm(choose: Chooser | null): void {
    this.#choose = choose;
    this.#struck = null;
  }

  /** Schedules a power failure. */
  cutPower(cut: PowerCut): void {
    this.#cutPower = cut;
  }

  /** Sets the clock, which does not advance between calls. */
  changeClock(change: (nowMs: number) => number): void {
    this.#nowMs = change(this.#nowMs);
  }

  /** Cuts the power unless it is off, then restores it. */
  restorePower(): void {
    this.#disk = this.#attached(this.#left ?? this.#disk.crash(anyOf(this.#random)));
    this.#left = null;
    this.endProcess();
  }

  /** Ends a process or phase, so that its faults do not affect the next one. */
  endProcess(): void {
    this.arm(null);
    this.#hasFailed = false;
    this.#cutPower = null;
  }

  /** Starts the service in a new process. @returns null if an injected fault prevents that. */
  async start(report: (line: string) => void = () => {}): Promise<EventLogService | null> {
    const options = { storage: this.#disk, ...this.#time(), report };
    return await this.attempt(() => openEventLog(options));
  }

  /** Runs `seal` in a new process. */
  async seal(bounds: SegmentBounds): Promise<void> {
    const options = { storage: this.#disk, ...this.#time(), report() {} };
    const log = await this.attempt(() => openLog(options));
    if (log === null) return;
    if (log.files.unsealed.some(({ events }) => events > 0)) {
      await this.attempt(() => log.seal(() => {}, { bounds }));
    }
    await this.attempt(() => log.close());
  }

  /** Runs `action`, which may fail only through an injected fault. @returns null if it fails. */
  async attempt<T>(action: () => Promise<T>): Promise<T | null> {
    try {
      return await action();
    } catch (error) {
      assert.ok(this.hasFailed, String((error as Error).stack));
      assert.match(String(error), /injected/);
      return null;
    }
  }

  /** Runs an operation, and retries it once if it fails because of an injected fault. */
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
