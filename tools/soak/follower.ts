/**
 * A consumer that follows the log across kills and restarts, with or without a filter, fast or
 * slow. Occasionally it disconnects and then follows from a different position.
 */
import type { ReplayFilter } from "../../src/client/replay.ts";
import type { FollowEnd, FollowEvents } from "../../src/client/wire.ts";
import { type Random, randomInteger } from "../support/random.ts";
import { OBSERVED_EVENTS_MAX } from "./bounds.ts";
import { EventTrace } from "./event_trace.ts";
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
    const { ending, failing } = this.#load;
    while (!ending.aborted) {
      const stay = new AbortController();
      const timer = setTimeout(() => stay.abort(), this.#random() * STAY_MS_MAX);
      try {
        await this.#follow(AbortSignal.any([stay.signal, ending, failing]));
      } catch (error) {
        if (failing.aborted || !(stay.signal.aborted || ending.aborted)) throw error;
      } finally {
        clearTimeout(timer);
      }
      this.#load.tally.add("follows");
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const filter = randomFilter(this.#load, this.#random);
    const slownessMs = this.#random() < 0.3 ? this.#random() * SLOWNESS_MS_MAX : 0;
    const limit = randomInteger(this.#random, 1, PAGE_EVENTS_MAX);
    const after = randomPosition(this.#load, this.#random);
    const watch = new Watch(this.#load, this.#name, filter, after);
    try {
      const options = { ...filter, after, limit, signal };
      for await (const record of this.#load.client.followRecords(options)) {
        if (record.type === "end") throw endedBy(this.#name, record);
        if (record.type === "events") await watch.see(record);
        if (slownessMs > 0) await pause(this.#load, slownessMs);
      }
    } finally {
      await watch.handIn();
    }
  }
}

function endedBy(name: string, { reason, detail }: FollowEnd): Violation {
  return new Violation(`${name} ended with ${reason}: ${detail ?? "no detail"}`);
}

/** The observation from a follow, before it is submitted. */
class Watch {
  readonly #load: Load;
  readonly #name: string;
  readonly #filter: ReplayFilter;
  #after: string | null;
  #through: string | null;
  #seen = new EventTrace();

  constructor(load: Load, name: string, filter: ReplayFilter, after: string | null) {
    this.#load = load;
    this.#name = name;
    this.#filter = filter;
    this.#after = after;
    this.#through = after;
  }

  async see({ events, nextAfter }: FollowEvents): Promise<void> {
    for (const event of events) this.#seen.add(event);
    this.#through = nextAfter;
    this.#load.tally.add("followed", events.length);
    if (this.#seen.length >= OBSERVED_EVENTS_MAX) await this.handIn();
  }

  async handIn(): Promise<void> {
    const { observations, failing } = this.#load;
    const [through, seen] = [this.#through, this.#seen];
    if (through === null || failing.aborted) return;
    const observation = { observer: this.#name, filter: this.#filter, after: this.#after };
    await observations.add({ ...observation, through, seen }, failing);
    this.#after = through;
    this.#seen = new EventTrace();
  }
}
