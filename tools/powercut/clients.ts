/** Runs the soak's clients on a log whose machine loses power. */
import { runClients } from "../soak/clients.ts";
import type { Load } from "../soak/load.ts";
import { Observations } from "../soak/observations.ts";
import { STEPS } from "../soak/workload.ts";

/** Excludes bulk appends, which take seconds under emulation. An abandoned append may be bulk. */
const LIGHT_STEPS = STEPS.filter((step) => step !== "bulk");

export interface ClientsOptions extends Pick<Load, "seed" | "client" | "ledger" | "tally"> {
  /** Number of the disk image; makes client names unique. */
  number: number;
}

export class Clients {
  readonly load: Load;
  readonly #number: number;
  readonly #ending = new AbortController();
  readonly #failing = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  /** The first client error; undefined if there was none. */
  firstError: unknown;

  constructor({ number, ...shared }: ClientsOptions) {
    this.#number = number;
    this.load = {
      ...shared,
      observations: new Observations(),
      steps: LIGHT_STEPS,
      ending: this.#ending.signal,
      failing: this.#failing.signal,
    };
  }

  start(writers: number, followers: number): void {
    const counts = { writers, readers: 0, followers };
    this.#running = runClients(this.load, this.#number, counts, this.#fail);
  }

  /** Lets the clients finish their current requests. @throws the first client error. */
  async end(): Promise<void> {
    this.#ending.abort();
    await this.#running;
    if (this.firstError !== undefined) throw this.firstError;
  }

  /** Aborts all outstanding requests. */
  abandon(): void {
    this.#failing.abort(new Error("the load is over"));
  }

  #fail = (error: unknown): void => {
    if (this.#failing.signal.aborted) return;
    this.firstError = error;
    this.#failing.abort(error);
  };
}
