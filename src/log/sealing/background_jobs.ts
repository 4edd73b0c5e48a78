/** Does jobs one after another while the log is being served. A failed one is retried. */
import { setTimeout } from "node:timers/promises";
import { describeError } from "../storage/system_error.ts";

const RETRY_MS_MAX = 300_000;

/** Backoff after the first failure. It doubles with each consecutive failure. */
const RETRY_MS = 1000;

/** Waits; rejects when the signal is aborted. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<void>;

export interface Job {
  /** Says what has not been done if it fails. */
  failure: string;
  /** Leaves no temporary files if it fails. */
  run: () => Promise<void>;
}

export class BackgroundJobs {
  readonly #next: () => Job | null;
  readonly #report: (line: string) => void;
  readonly #pause: Pause;
  readonly #closing = new AbortController();
  #running: Promise<void> | null = null;

  /** @param next returns the job to do next; null if there is none. */
  constructor(
    next: () => Job | null,
    report: (line: string) => void,
    pause: Pause = (ms, signal) => setTimeout(ms, undefined, { signal }),
  ) {
    this.#next = next;
    this.#report = report;
    this.#pause = pause;
  }

  start(): void {
    if (this.#running !== null || this.#closing.signal.aborted || this.#next() === null) return;
    this.#running = this.#run();
  }

  /** Starts no other job. Resolves when the current one has ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let pauseMs = RETRY_MS;
    for (let job = this.#next(); job !== null && !signal.aborted; job = this.#next()) {
      try {
        await job.run();
        pauseMs = RETRY_MS;
      } catch (error) {
        if (signal.aborted) break;
        const reason = describeError(error);
        this.#report(`${job.failure}, retrying in ${pauseMs / 1000} s: ${reason}`);
        // The pause rejects only when this is closed.
        await this.#pause(pauseMs, signal).catch(() => {});
        pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX);
      }
    }
    this.#running = null;
  }
}
