/** Deadlines of requests. The error says what the request was waiting for. */
import { ConnectionError } from "./errors.ts";

/** Longest delay of `setTimeout()`; a longer one would expire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** What each pending request is waiting for, by its signal. `unixFetch()` keeps it up to date. */
export const WAITS: WeakMap<AbortSignal, string> = new WeakMap();

/** Aborts its signal when the caller's signal is aborted, or when time is up. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly signal: AbortSignal;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @throws the caller's abort reason, if it is aborted already. */
  constructor(caller: AbortSignal | undefined) {
    caller?.throwIfAborted();
    this.signal = AbortSignal.any([this.#controller.signal, ...caller ? [caller] : []]);
  }

  /** Starts to measure time, from zero. @param name Name of the request, for the message. */
  start(name: string, limitMs: number): void {
    this.stop();
    this.#timer = setTimeout(() => {
      const wait = WAITS.get(this.signal) ?? "a response";
      const message = `${name} got no response within ${limitMs} ms; it was waiting for ${wait}`;
      this.#controller.abort(new ConnectionError(message));
    }, Math.min(limitMs, TIMER_MS_MAX));
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
