/**
 * Seals an open log step by step: segments are written in this thread, on the log's own storage,
 * when the test allows it.
 */
import { setImmediate, setTimeout } from "node:timers/promises";
import { makeIndex } from "../../src/log/sealing/index_merging.ts";
import type { SealingOptions } from "../../src/log/sealing/sealer.ts";
import { type MakerSettings, makeSegment } from "../../src/log/sealing/segment_maker.ts";
import type { Storage } from "../../src/log/storage/storage.ts";
import type { SimulatedDisk } from "./simulated_disk.ts";

/** Number of event loop turns without an operation after which the disk is considered idle. */
const QUIET_TURNS = 6;
const QUIET_TIMERS = 3;

/** Waits until all work on a disk is done or blocked. */
export async function untilQuiet(storage: SimulatedDisk): Promise<void> {
  let seen;
  do {
    seen = storage.operations.length;
    for (let turn = 0; turn < QUIET_TURNS; turn++) await setImmediate();
    // Long work yields through a timer.
    for (let turn = 0; turn < QUIET_TIMERS; turn++) await setTimeout(0);
  } while (storage.operations.length !== seen);
}

export interface SealingStepsOptions
  extends MakerSettings, Pick<SealingOptions, "backlogWaitBytes" | "backlogWaitMs"> {
  /** Default: 1, which rotates every non-empty tail before the next commit. */
  rotateBytes?: number;
}

export class SealingSteps {
  /** Backoff delays requested after failures, in milliseconds. */
  readonly pausesMs: number[] = [];
  /** Backlogs at which segments were made. */
  readonly backlogs: number[] = [];
  /** What the thread that makes a segment would see; null before the first. */
  backlog: Float64Array | null = null;
  /** Called before each segment is written. It may delay the write or throw. */
  beforeMake: () => Promise<void> | void = () => {};
  readonly #options: SealingStepsOptions;
  /** Segments written so far. */
  #made = 0;
  #paused = Promise.withResolvers<void>();
  #resumed = Promise.withResolvers<void>();

  constructor(options: SealingStepsOptions = {}) {
    this.#options = options;
  }

  /** Resolves when another segment has been written and the disk is idle. */
  async nextIdle(storage: SimulatedDisk): Promise<void> {
    const made = this.#made;
    while (this.#made === made) await setImmediate();
    await untilQuiet(storage);
  }

  /** Resolves at the next pause. */
  nextPause(): Promise<void> {
    this.#paused = Promise.withResolvers<void>();
    return this.#paused.promise;
  }

  /** Ends the current pause. */
  resume(): void {
    const resumed = this.#resumed;
    this.#resumed = Promise.withResolvers<void>();
    resumed.resolve();
  }

  /** The sealing option for `openTestLog()` and similar functions. */
  on(): (storage: Storage) => SealingOptions {
    return (storage) => ({
      maker: {
        makeSegment: async (task) => {
          this.backlog = new Float64Array(task.backlog);
          await this.beforeMake();
          this.backlogs.push(this.backlog[0]!);
          const made = await makeSegment(storage, task, this.#options);
          this.#made += 1;
          return made;
        },
        makeIndex: (plan) => makeIndex(storage, plan),
        close: async () => {},
      },
      rotateBytes: this.#options.rotateBytes ?? 1,
      backlogWaitBytes: this.#options.backlogWaitBytes,
      backlogWaitMs: this.#options.backlogWaitMs,
      pause: async (ms, signal) => {
        this.pausesMs.push(ms);
        this.#paused.resolve();
        const aborted = new Promise<void>((resolve) =>
          signal.addEventListener("abort", () => resolve(), { once: true })
        );
        await Promise.race([this.#resumed.promise, aborted]);
      },
    });
  }
}
