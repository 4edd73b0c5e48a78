/**
 * A consumer that follows the log across kills and restarts, with or without a filter, fast or
 * slow. Occasionally it disconnects and then follows from a different position.
 */
import type { ReplayFilter } from "../../src/client/replay.ts";
import { type Random, randomInteger } from "../support/random.ts";
import { OBSERVED_EVENTS_MAX } from "./bounds.ts";
import { type Load, pause } from "./load.ts";
import { randomFilter, randomPosition } from "./reader.ts";
import { Violation } from "./violation.ts";
import { randomOf } from "./workload.ts";

/** Maximum duration of a follow, in milliseconds. */
const STAY_MS_MAX = 20_000;
/** Maximum delay of a slow follower per record, in milliseconds. */
const SLOWNESS_MS_MAX = 100;
const PAGE_EVENTS_MAX = 500;

export class LogFollower {
  readonly #load: Load;
  readonly #name: string;
  readonly #random: Random;

  constructor(load: Load, name: string) {
    this.#load = load;
    this.#name = name;
    this.#random = randomOf(load.seed, name);
  }

  /** Runs until the load ends. @throws {Violation} or any other error that occurs. */
  async run(): Promise<void> {
    const { ending, failing, tally } = this.#load;
    while (!ending.aborted) {
      const over = AbortSignal.any([AbortSignal.timeout(this.#stayMs()), ending]);
      try {
        await this.#follow(AbortSignal.any([over, failing]));
      } catch (error) {
        if (failing.aborted || !over.aborted) throw error;
      }
      tally.add("follows");
    }
  }

  #stayMs(): number {
    return randomInteger(this.#random, 0, STAY_MS_MAX);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const filter = randomFilter(this.#load, this.#random);
    const slownessMs = this.#random() < 0.3 ? this.#random() * SLOWNESS_MS_MAX : 0;
    const limit = randomInteger(this.#random, 1, PAGE_EVENTS_MAX);
    const start = randomPosition(this.#load, this.#random);
    let [after, through, hashes] = [start, start, [] as string[]];
    const handIn = () => {
      if (through !== null) this.#handIn(through, { filter, after, hashes });
      [after, hashes] = [through, []];
    };
    try {
      const options = { ...filter, after, limit, signal };
      for await (const record of this.#load.client.followRecords(options)) {
        if (record.type === "end") {
          const { reason, detail = "no detail" } = record;
          throw new Violation(`${this.#name} ended with ${reason}: ${detail}`);
        }
        if (record.type === "events") {
          hashes.push(...record.events.map(({ event_hash }) => event_hash));
          through = record.nextAfter;
          this.#load.tally.add("followed", record.events.length);
          if (hashes.length >= OBSERVED_EVENTS_MAX) handIn();
        }
        if (slownessMs > 0) await pause(this.#load, slownessMs);
      }
    } finally {
      handIn();
    }
  }

  #handIn(
    through: string,
    seen: { filter: ReplayFilter; after: string | null; hashes: string[] },
  ): void {
    this.#load.observations.push({ observer: this.#name, through, seen });
  }
}
