/**
 * Seals rotated tails one after another while the log is being served. A failed seal is reported
 * and retried with backoff, without affecting reads and writes.
 */
import { setTimeout } from "node:timers/promises";
import type { MergePlan } from "../segment/sealed_history.ts";
import type { MadeSegment, SegmentTask } from "./segment_maker.ts";

const SEAL_RETRY_MS_MAX = 300_000;

/** Backoff after the first failure. It doubles with each consecutive failure. */
const SEAL_RETRY_MS = 1000;

/** Makes files while the log is being served. The temporary name must be free. */
interface Maker<Task, Made> {
  /** Calls must not overlap. */
  make(task: Task): Promise<Made>;
  /** Rejects active requests and frees all resources. */
  close(): Promise<void>;
}

export type SegmentMaker = Maker<SegmentTask, MadeSegment>;
export type IndexMaker = Maker<MergePlan, void>;

export interface BackgroundSealingOptions {
  maker: Pick<SegmentMaker, "close">;
  /** Says in reports what failed. */
  failure?: string;
  /** The pending file to seal next; null if there is none. */
  nextPath: () => string | null;
  /** Seals that file. Leaves no temporary files if it fails. */
  sealNext: () => Promise<void>;
  report: (line: string) => void;
  /** Waits; rejects when the signal is aborted. Defaults to a timer. */
  pause?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

export class BackgroundSealing {
  readonly #options: BackgroundSealingOptions;
  readonly #closing = new AbortController();
  #running: Promise<void> | null = null;

  constructor(options: BackgroundSealingOptions) {
    this.#options = options;
  }

  /** Starts sealing if a file is waiting. Called after each commit. */
  start(): void {
    if (this.#closing.signal.aborted || this.#options.nextPath() === null) return;
    this.#running ??= this.#run();
  }

  /** Aborts a seal in progress. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#options.maker.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { nextPath, sealNext, report, failure = "not sealed" } = this.#options;
    const { pause = (ms, signal) => setTimeout(ms, undefined, { signal }) } = this.#options;
    const { signal } = this.#closing;
    let pauseMs = SEAL_RETRY_MS;
    for (let path = nextPath(); path !== null && !signal.aborted; path = nextPath()) {
      try {
        await sealNext();
        pauseMs = SEAL_RETRY_MS;
      } catch (error) {
        if (signal.aborted) break;
        const reason = error instanceof Error ? error.message : String(error);
        report(`${path}: ${failure}, retrying in ${pauseMs / 1000} s: ${reason}`);
        // The pause rejects only when sealing is closed.
        await pause(pauseMs, signal).catch(() => {});
        pauseMs = Math.min(2 * pauseMs, SEAL_RETRY_MS_MAX);
      }
    }
    this.#running = null;
    this.start();
  }
}
