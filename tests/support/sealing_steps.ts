/**
 * Sealing while a log is open, at the pace of a test: segments are made in place, on the log's own
 * storage, when the test says so.
 */
import { setImmediate } from "node:timers/promises";
import type { SealingOptions } from "../../src/log/log.ts";
import type { SegmentMaker } from "../../src/log/sealing/background_sealing.ts";
import { type MakerSettings, makeSegment } from "../../src/log/sealing/segment_maker.ts";
import type { Storage } from "../../src/log/storage/storage.ts";
import { Gate } from "./gate.ts";
import type { SimulatedDisk } from "./simulated_disk.ts";

/** Turns of the event loop without an operation, after which none comes. */
const QUIET_TURNS = 6;

/** Waits until whatever is under way on a disk is done, or waits itself. */
export async function untilQuiet(storage: SimulatedDisk): Promise<void> {
  for (let turns = 0, seen = -1; turns < QUIET_TURNS; turns++) {
    if (storage.operations.length !== seen) turns = 0;
    seen = storage.operations.length;
    await setImmediate();
  }
}

export interface SealingStepsOptions extends MakerSettings {
  /** 1 if absent: every tail with an event is rotated before the next commit. */
  rotateBytes?: number;
}

export class SealingSteps {
  /** How long each pause after a failure was to be, in milliseconds. */
  readonly pausesMs: number[] = [];
  /** What was told to be left to seal. */
  readonly backlogs: number[] = [];
  /** Called before each segment is made; may delay it, or throw. */
  beforeMake: () => Promise<void> | void = () => {};
  readonly #options: SealingStepsOptions;
  /** Segments that have been made. */
  #made = 0;
  #paused = new Gate();
  #resumed = new Gate();

  constructor(options: SealingStepsOptions = {}) {
    this.#options = options;
  }

  /** Resolves when a segment has been made, from now on, and nothing goes on after it. */
  async nextIdle(storage: SimulatedDisk): Promise<void> {
    const made = this.#made;
    while (this.#made === made) await setImmediate();
    await untilQuiet(storage);
  }

  /** Resolves at the next pause. */
  nextPause(): Promise<void> {
    this.#paused = new Gate();
    return this.#paused.opened;
  }

  /** Ends the pause at hand. */
  resume(): void {
    const resumed = this.#resumed;
    this.#resumed = new Gate();
    resumed.open();
  }

  /** For `openTestLog()` and its like. */
  on(): (storage: Storage) => SealingOptions {
    return (storage) => ({
      maker: this.#maker(storage),
      rotateBytes: this.#options.rotateBytes ?? 1,
      pause: async (ms, signal) => {
        this.pausesMs.push(ms);
        this.#paused.open();
        const aborted = new Promise<void>((resolve) =>
          signal.addEventListener("abort", () => resolve(), { once: true })
        );
        await Promise.race([this.#resumed.opened, aborted]);
      },
    });
  }

  #maker(storage: Storage): SegmentMaker {
    return {
      make: async (task) => {
        await this.beforeMake();
        this.backlogs.push(task.backlogBytes);
        const made = await makeSegment(storage, task, this.#options);
        this.#made += 1;
        return made;
      },
      close: async () => {},
    };
  }
}
