/** Notices that a stream ends before the event through which its pusher has read the log. */
import { operationalError } from "../../src/commands/exit.ts";
import type { Log } from "../../src/log/log.ts";
import { type SaidEnd, saidEnd } from "../nats/companion.ts";
import type { MirrorStream } from "../nats/stream.ts";

/** How long an incomplete stream may stand still before that is reported. */
export const BEHIND_MS_MAX = 10_000;

export class PusherEnd {
  readonly #log: Log;
  readonly #report: (line: string) => void;
  /** What the pusher said at the start. */
  #said: SaidEnd | null = null;
  /** The log's end when `conclude()` or `watch()` last found it behind, and since when. */
  #behind: { frontier: string | null; sinceMs: number } | null = null;
  #reported: string | null | undefined;

  constructor(log: Log, report: (line: string) => void) {
    this.#log = log;
    this.#report = report;
  }

  async ask(stream: MirrorStream): Promise<void> {
    this.#said ??= await saidEnd(stream);
  }

  /**
   * Checks a log that contains all messages in the stream.
   * @throws {Error} if the pusher had read more at the start; it may still push that.
   * @throws {CommandError} if the stream has stood still for too long since.
   */
  conclude(): void {
    if (!this.#isBehind(this.#said)) return;
    const isStill = performance.now() - this.#behind!.sinceMs > BEHIND_MS_MAX;
    throw (isStill ? operationalError : Error)(this.#text(this.#said!));
  }

  /** Reports once if the stream stands still while its pusher has read more. */
  async watch(stream: MirrorStream): Promise<void> {
    const said = await saidEnd(stream);
    const { frontier } = this.#log.snapshot;
    const isKnown = this.#behind?.frontier === frontier && this.#reported !== frontier;
    if (!this.#isBehind(said) || !isKnown) return;
    this.#reported = frontier;
    this.#report(this.#text(said!));
  }

  #isBehind(said: SaidEnd | null): boolean {
    const { frontier } = this.#log.snapshot;
    const isBehind = said !== null && said.event_id > (frontier ?? "");
    if (!isBehind) this.#behind = null;
    else if (this.#behind?.frontier !== frontier) {
      this.#behind = { frontier, sinceMs: performance.now() };
    }
    return isBehind;
  }

  #text({ event_id, at }: SaidEnd): string {
    return `the stream is incomplete: it ends with event ${this.#log.snapshot.frontier}, but at ` +
      `${at} its pusher had read the log through event ${event_id}; the log is valid, but ` +
      "without the events in between";
  }
}
