/**
 * Seals rotated tails one after the other while the log is served. A sealing that fails changes
 * nothing for readers and writers: it is reported, and tried again after a pause.
 */
import { setTimeout } from "node:timers/promises";
import type { SegmentMaker } from "./segment_maker.ts";

export const SEAL_RETRY_MS_MAX: number = 300_000;

/** A sealing that failed is tried again after this long; each further pause doubles. */
export const SEAL_RETRY_MS: number = 1000;

export interface BackgroundSealingOptions {
  maker: SegmentMaker;
  /** The pending file to be sealed next; null when there is none. */
  nextPath: () => string | null;
  /** How many bytes of commits are not sealed. */
  backlogBytes: () => number;
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

  /** To be called after each commit: there may be a file to be sealed. */
  start(): void {
    const { maker, backlogBytes } = this.#options;
    maker.setBacklog(backlogBytes());
    if (this.#closing.signal.aborted || this.#options.nextPath() === null) return;
    this.#running ??= this.#run();
  }

  /** Ends what is under way as soon as it can be. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#options.maker.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { nextPath, report } = this.#options;
    const { signal } = this.#closing;
    let pauseMs = SEAL_RETRY_MS;
    for (let path = nextPath(); path !== null && !signal.aborted; path = nextPath()) {
      const failure = await this.#seal();
      if (failure === null) {
        pauseMs = SEAL_RETRY_MS;
      } else if (!signal.aborted) {
        report(`${path}: not sealed, tried again in ${pauseMs / 1000} s: ${failure}`);
        await this.#pause(pauseMs);
        pauseMs = Math.min(2 * pauseMs, SEAL_RETRY_MS_MAX);
      }
    }
    this.#running = null;
    this.start();
  }

  /** @returns why the next file could not be sealed; null when it was. */
  async #seal(): Promise<string | null> {
    try {
      await this.#options.sealNext();
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  async #pause(ms: number): Promise<void> {
    const { pause = timer } = this.#options;
    const { signal } = this.#closing;
    try {
      await pause(ms, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

function timer(ms: number, signal: AbortSignal): Promise<void> {
  return setTimeout(ms, undefined, { signal });
}
