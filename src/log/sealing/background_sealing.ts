/**
 * Seals rotated tails one after the other while the log is served. A sealing that fails is reported
 * and retried after a pause; readers and writers continue.
 */
import { setTimeout } from "node:timers/promises";
import type { MakeSegment } from "./segment_maker.ts";

const SEAL_RETRY_MS_MAX = 300_000;

/** The first pause after a failure; each further one doubles. */
const SEAL_RETRY_MS = 1000;

/** Makes segments for a log that is served, on another thread. */
export interface SegmentMaker {
  make: MakeSegment;
  /** Rejects what is under way, and frees all resources. */
  close(): Promise<void>;
}

export interface BackgroundSealingOptions {
  maker: SegmentMaker;
  /** The pending file to seal next; null when there is none. */
  nextPath: () => string | null;
  /** Seals that file. Leaves no temporary file when it fails. */
  sealNext: () => Promise<void>;
  /** Receives sentences for the operator. */
  report: (line: string) => void;
  /** Waits, and rejects once the signal is aborted; a timer if absent. */
  pause?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

export class BackgroundSealing {
  readonly #options: BackgroundSealingOptions;
  readonly #closing = new AbortController();
  #running: Promise<void> | null = null;

  constructor(options: BackgroundSealingOptions) {
    this.#options = options;
  }

  /** Call it after each commit: there may be a file to seal. */
  start(): void {
    if (this.#closing.signal.aborted || this.#options.nextPath() === null) return;
    this.#running ??= this.#run();
  }

  /** Ends what is under way as soon as possible. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#options.maker.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { nextPath, sealNext, report } = this.#options;
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
        report(`${path}: not sealed, tried again in ${pauseMs / 1000} s: ${reason}`);
        // Only closing ends it early.
        await pause(pauseMs, signal).catch(() => {});
        pauseMs = Math.min(2 * pauseMs, SEAL_RETRY_MS_MAX);
      }
    }
    this.#running = null;
    this.start();
  }
}
