/** The clients that load a log. */
import type { ClientCounts } from "./bounds.ts";
import { LogFollower } from "./follower.ts";
import type { Load } from "./load.ts";
import { Reader } from "./reader.ts";
import type { Tally } from "./tally.ts";
import { Writer } from "./writer.ts";

export type LoadOptions = Pick<Load, "seed" | "client" | "ledger" | "tally" | "steps"> & {
  /** Number of the log, which makes client names unique. */
  number: number;
  tally: Tally;
};

/** The clients of one log. The first error ends them all. */
export class Clients {
  readonly load: Load;
  readonly #number: number;
  readonly #ending = new AbortController();
  readonly #failing: AbortController;
  #running: Promise<unknown> = Promise.resolve();

  /** @param failing is aborted with the first error of a client. */
  constructor({ number, ...shared }: LoadOptions, failing = new AbortController()) {
    this.#number = number;
    this.#failing = failing;
    const { signal: ending } = this.#ending;
    this.load = { ...shared, observations: [], ending, failing: failing.signal };
  }

  start({ writers, readers, followers }: ClientCounts): void {
    const named = <T>(kind: string, count: number, make: (name: string) => T) =>
      Array.from({ length: count }, (_, place) => make(`${kind}-${this.#number}-${place}`));
    const clients = [
      ...named("writer", writers, (name) => new Writer(this.load, name)),
      ...named("reader", readers, (name) => new Reader(this.load, name)),
      ...named("follower", followers, (name) => new LogFollower(this.load, name)),
    ];
    const fail = (error: unknown) => this.#failing.abort(error);
    this.#running = Promise.all(clients.map((client) => client.run().catch(fail)));
  }

  /** Lets the clients finish their current requests. @throws the first client error. */
  async end(): Promise<void> {
    this.#ending.abort();
    await this.#running;
    this.#failing.signal.throwIfAborted();
  }
}
