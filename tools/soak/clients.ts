/** The clients that load a log. */
import type { Audit } from "./audit.ts";
import type { ClientCounts } from "./bounds.ts";
import { runFollower } from "./follower.ts";
import type { ClientLoad, Load } from "./load.ts";
import { runReader } from "./reader.ts";
import { randomOf } from "./workload.ts";
import { Writer } from "./writer.ts";

/** The clients of one log. The first error ends them all. */
export class Clients {
  readonly load: Load;
  readonly #ending = new AbortController();
  readonly #failing: AbortController;
  #running: Promise<unknown> = Promise.resolve();

  /** @param failing is aborted with the first error of a client. */
  constructor(
    shared: Omit<Load, "observations" | "ending" | "failing">,
    failing: AbortController,
  ) {
    this.#failing = failing;
    const { signal: ending } = this.#ending;
    this.load = { ...shared, observations: [], ending, failing: failing.signal };
  }

  start({ writers, readers, followers }: ClientCounts): void {
    const fail = (error: unknown) => this.#failing.abort(error);
    const started = (kind: string, count: number, run: (load: ClientLoad) => Promise<void>) =>
      Array.from({ length: count }, (_, place) => {
        const name = `${kind}-${this.load.number}-${place}`;
        return run({ ...this.load, name, random: randomOf(this.load.seed, name) }).catch(fail);
      });
    this.#running = Promise.all([
      ...started("writer", writers, (load) => new Writer(load).run()),
      ...started("reader", readers, runReader),
      ...started("follower", followers, runFollower),
    ]);
  }

  /** Audits new commits, then checks what the clients have observed. */
  async check(audit: Audit): Promise<void> {
    const { client, failing, observations, tally } = this.load;
    const before = audit.length;
    await audit.catchUp(client, failing);
    tally.add("audited", audit.length - before);
    tally.add("checked", audit.check(observations));
  }

  /** Lets the clients finish their current requests. @throws the first client error. */
  async end(): Promise<void> {
    this.#ending.abort();
    await this.#running;
    this.#failing.signal.throwIfAborted();
  }
}
