/**
 * A log on an unreliable machine, with its service and one follower. All responses and reads are
 * checked against the known history.
 */
import assert from "node:assert/strict";
import type { SegmentBounds } from "../../../src/log/segment/segment_writer.ts";
import type { EventLogService } from "../../../src/service/event_log.ts";
import { type Random, randomInteger } from "../../../tools/support/random.ts";
import type { Mutation } from "../../support/submitted.ts";
import { KnownHistory } from "../../support/known_history.ts";
import { type Outcome, statusOf } from "../../support/outcome.ts";
import { pause } from "../../support/pause.ts";
import type { Tree } from "../../support/simulated_disk.ts";
import { replayText } from "../../support/stream_listing.ts";
import { HistoryFollower } from "./history_follower.ts";
import { HistoryMachine } from "./history_machine.ts";

/** The files of a log, and its known history. */
export interface Base {
  tree: Tree;
  known: KnownHistory;
}

export class LogRun {
  readonly machine: HistoryMachine;
  readonly known: KnownHistory;
  readonly random: Random;
  service: EventLogService | null = null;
  follower: HistoryFollower | null = null;
  isPoisoned = false;
  #groups = 0;

  constructor(random: Random, base?: Base) {
    this.random = random;
    this.machine = new HistoryMachine(random, base?.tree);
    this.known = base?.known.copy() ?? new KnownHistory();
  }

  /** A copy of the current state, from which another run can start. */
  base(): Base {
    return { tree: this.machine.disk.tree(), known: this.known.copy() };
  }

  /** Starts a process and checks what it returns. @returns whether it started. */
  async serve(): Promise<boolean> {
    const service = await this.machine.start();
    if (service !== null) await this.take(service);
    return service !== null;
  }

  /** Takes over a started service and checks it against the known history. */
  async take(service: EventLogService): Promise<void> {
    this.service = service;
    this.isPoisoned = false;
    this.known.settle(await this.machine.again(() => replayText(service, this.known.frontier)));
  }

  /** Follows the service after the event at index `after`, by default from the beginning. */
  follow(after = -1): void {
    const { events, text } = this.known;
    const place = Math.max(-1, after);
    const next = events[place + 1];
    const end = text === "" ? 0 : text.length + 1;
    const start = next === undefined ? end : text.lastIndexOf(`{"event_id":"${next.event_id}"`);
    this.follower = new HistoryFollower(this.service!, events[place]?.event_id, start);
  }

  /**
   * Submits mutations concurrently, each after a random delay of up to `turnsMax` turns.
   * @param isGroup whether they must share a group commit.
   */
  async submit(
    mutations: readonly Mutation[],
    { turnsMax = 0, isGroup = false } = {},
  ): Promise<Outcome[]> {
    const service = this.service!;
    const attempt = (work: () => Promise<Outcome>) => this.machine.attempt(work);
    const group = isGroup ? this.#groups++ : null;
    const outcomes = await Promise.all(mutations.map(async (mutation) => {
      if (turnsMax > 0) await pause(this.random, randomInteger(this.random, 0, turnsMax));
      return await this.known.submit(service, mutation, { attempt, group });
    }));
    const codes = outcomes.map(statusOf);
    const isRefused = codes.includes("storage_full") || codes.includes("writer_poisoned");
    assert.ok(this.machine.hasFailed || !isRefused, "nothing has failed");
    this.isPoisoned ||= codes.includes("writer_poisoned");
    if (this.isPoisoned) await this.follower?.ended();
    if (!this.machine.isOff) {
      this.known.shows(await this.machine.again(() => replayText(service, this.known.frontier)));
    }
    return outcomes;
  }

  /** Ends the process, cleanly or not. */
  async end(how: "closed" | "killed"): Promise<void> {
    const service = this.service;
    this.service = null;
    if (how === "closed") await this.machine.attempt(async () => await service?.close());
    else service?.endFollowers();
    if (!this.machine.isOff) this.machine.endProcess();
  }

  /** Shuts the service down if it is running, then runs `seal`. */
  async seal(bounds: SegmentBounds): Promise<void> {
    if (this.service !== null) await this.end("closed");
    await this.machine.seal(bounds);
  }
}
