/**
 * A log on a simulated disk that goes through steps: what clients, operators and the power do to
 * it. The same steps do the same, operation by operation.
 */
import assert from "node:assert/strict";
import { SEGMENT_TEMPORARY_FILE } from "../../../src/log/storage/file_names.ts";
import type { LogOptions } from "../../../src/log/log.ts";
import type { EventLogService } from "../../../src/service/event_log.ts";
import type { Mutation } from "../../support/history.ts";
import type { Outcome } from "../../support/outcome.ts";
import {
  type Random,
  randomInteger,
  randomItem,
  seededRandom,
} from "../../../tools/support/random.ts";
import { torn } from "../../support/simulated_crash.ts";
import { type OperationHook, SimulatedDisk, type Tree } from "../../support/simulated_disk.ts";
import { TEST_TIME_MS } from "../../support/test_log.ts";
import { openWatchedLog, openWatchedService } from "../../support/watched_log.ts";
import { Ledger } from "./ledger.ts";

/** What can happen to a log. Each step but the last two starts the service if none is running. */
export const STEPS = [
  /** A batch. */
  "append",
  /** Two batches at once, in one commit. */
  "group",
  /** A batch of a new source, and at once the retirement of that source. */
  "retire",
  /** The process ends as by SIGKILL and is started again; the machine goes on. */
  "kill",
  /** The power fails while a batch is being synced; the service is started again. */
  "crash",
  /** A clean shutdown. */
  "shutdown",
  /** The service is shut down and the command `seal` does its work. */
  "seal",
  /** The same, but the segment cannot be made: the rotated tail stays. */
  "rotate",
] as const;
export type Step = typeof STEPS[number];

const TEXT_CHARACTERS = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789é\n"];

/** A clock that goes on with each look at it, and randomness from a seed. */
export function steadyTime(
  startMs: number,
  random: Random,
): Pick<LogOptions, "clockMs" | "randomBytes"> {
  let nowMs = startMs;
  return {
    clockMs: () => nowMs++,
    randomBytes: (into) => {
      for (let i = 0; i < into.length; i++) into[i] = randomInteger(random, 0, 255);
    },
  };
}

/** Text that does not get shorter when it is compressed. */
function randomText(seed: number, length: number): string {
  const random = seededRandom(seed);
  return Array.from({ length }, () => randomItem(random, TEXT_CHARACTERS)).join("");
}

/** A log and what was submitted to it. */
export interface Base {
  tree: Tree;
  ledger: Ledger;
}

export const EMPTY_BASE: Base = { tree: new Map(), ledger: new Ledger() };

/** What these steps leave, all of it durable. */
export async function baseOf(steps: readonly Step[]): Promise<Base> {
  const session = new CrashSession();
  for (const step of steps) await session.run(step);
  return { tree: session.disk.tree(), ledger: session.ledger };
}

export class CrashSession {
  readonly ledger: Ledger;
  #disk: SimulatedDisk;
  #service: EventLogService | null = null;
  /** Asked before each operation, on whatever disk. */
  #hook: OperationHook | null = null;
  readonly #time = steadyTime(TEST_TIME_MS, seededRandom(1));

  constructor({ tree, ledger }: Base = EMPTY_BASE) {
    this.#disk = new SimulatedDisk(tree);
    this.ledger = ledger.copy();
  }

  get disk(): SimulatedDisk {
    return this.#disk;
  }

  set hook(hook: OperationHook | null) {
    this.#hook = hook;
    this.#disk.hook = hook;
  }

  async run(step: Step): Promise<void> {
    switch (step) {
      case "append":
        return await this.#submit([this.#batch("shop", 2)]);
      case "group":
        return await this.#submitTogether([this.#batch("shop", 1), this.#batch("crm", 2)]);
      case "retire": {
        const source = `old-${this.ledger.calls.length}`;
        return await this.#submit([this.#batch(source, 1), { kind: "retire", source }]);
      }
      case "kill":
        this.#service = null;
        return void await this.#serve();
      case "crash":
        return await this.#crash();
      case "shutdown":
        return await this.#shutDown();
      case "seal":
        return await this.#seal();
      case "rotate":
        return await this.#rotate();
    }
  }

  /** A batch with an id of its own whose events fill several sectors. */
  #batch(source: string, events: number): Mutation {
    const number = this.ledger.calls.length;
    const text = randomText(number, 500);
    const eventOf = (place: number) => ({
      stream: `s-${place}`,
      record_key: `${number}/${place}`,
      kind: "upserted",
      payload: { number, place, text: place === 0 ? text : "" },
    });
    const submitted = Array.from({ length: events }, (_, place) => eventOf(place));
    return { kind: "append", batch: { source, batch_id: `b-${number}`, events: submitted } };
  }

  async #submit(mutations: readonly Mutation[]): Promise<void> {
    const service = await this.#serve();
    const submitted = mutations.map((mutation) => this.ledger.submit(service, mutation));
    assertAccepted(await Promise.all(submitted));
  }

  async #submitTogether(mutations: readonly Mutation[]): Promise<void> {
    assertAccepted(await this.ledger.submitTogether(await this.#serve(), mutations));
  }

  /** The service, started if there is none. */
  async #serve(): Promise<EventLogService> {
    const options = { storage: this.#disk, ...this.#time, report: () => {} };
    return this.#service ??= await openWatchedService(options);
  }

  async #crash(): Promise<void> {
    const service = await this.#serve();
    let left: SimulatedDisk | null = null;
    this.#disk.hook = async (operation) => {
      const fault = await this.#hook?.(operation) ?? null;
      if (left !== null) return { errno: "EIO" };
      if (operation.kind !== "sync") return fault;
      left = this.#disk.crash(torn("every other sector"));
      return { errno: "EIO" };
    };
    const { body } = await this.ledger.submit(service, this.#batch("shop", 2));
    assert.equal(body.error, "writer_poisoned");
    this.#disk = left!;
    this.#disk.hook = this.#hook;
    this.#service = null;
    await this.#serve();
  }

  async #shutDown(): Promise<void> {
    const service = this.#service;
    this.#service = null;
    await service?.close();
  }

  async #seal(): Promise<void> {
    await this.#shutDown();
    const log = await openWatchedLog({
      storage: this.#disk,
      ...this.#time,
      report() {},
    });
    try {
      if (log.hasUnsealed) await log.seal(() => {}, { bounds: { events: 2, bytes: 100_000 } });
    } finally {
      await log.close();
    }
  }

  async #rotate(): Promise<void> {
    const cut = { errno: "EIO" };
    this.#disk.hook = async (operation) => {
      const fault = await this.#hook?.(operation) ?? null;
      const { kind, path } = operation;
      return kind === "open" && path === SEGMENT_TEMPORARY_FILE ? cut : fault;
    };
    await this.#seal().catch((error) => assert.match(String(error), /EIO: injected/));
    this.#disk.hook = this.#hook;
  }
}

function assertAccepted(outcomes: readonly Outcome[]): void {
  for (const { status, body } of outcomes) assert.equal(status, 200, JSON.stringify(body));
}
