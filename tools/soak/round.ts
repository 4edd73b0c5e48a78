/**
 * One log, from its first event to its last. Clients and injected faults act on it, and at the
 * end the whole log is checked. The first violation ends the round.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { RuntimeName } from "../support/runtimes.ts";
import { type Random, randomInteger } from "../support/random.ts";
import { Audit, type KnownHeads } from "./audit.ts";
import { ANSWER_TIMEOUT_MS, type ClientCounts, LOAD_MS_MIN, SAMPLE_MS } from "./bounds.ts";
import { runClients } from "./clients.ts";
import type { Disturbance, Scene } from "./disturbances.ts";
import { Ledger } from "./ledger.ts";
import type { Load } from "./load.ts";
import { Observations } from "./observations.ts";
import { ServedLog } from "./served_log.ts";
import { describeExit } from "../support/program.ts";
import type { Tally } from "./tally.ts";
import { claim } from "./violation.ts";
import type { Vitals } from "./vitals.ts";
import { makeBatch, randomOf } from "./workload.ts";

/** Maximum number of acknowledged batches resent at the end. */
const REPEATS_MAX = 100;

export interface RoundOptions {
  seed: number;
  /** Number of this round, which makes names unique across rounds. */
  number: number;
  /** An empty directory. */
  dir: string;
  runtimes: readonly RuntimeName[];
  /** Returns the next fault; null when the soak is over. */
  nextDisturbance: () => Disturbance | null;
  clients: ClientCounts;
  /** Maximum duration of the load between two faults. */
  loadMsMax: number;
  /** The round ends at this number of batches. */
  roundBatchesMax: number;
  /** Size at which the service seals its tail; default ROTATE_BYTES. */
  rotateBytes?: number | undefined;
  tally: Tally;
  vitals: Vitals;
  /** Aborts the round. */
  signal: AbortSignal;
}

/** Runs one round. @throws {Violation} or any other error, whichever occurs first. */
export async function runRound(options: RoundOptions): Promise<void> {
  const failing = new AbortController();
  const fail = (error: unknown) => failing.abort(error);
  const giveUp = () => fail(options.signal.reason);
  options.signal.addEventListener("abort", giveUp, { once: true });
  const random = randomOf(options.seed, `round ${options.number}`);
  const { dir, runtimes, rotateBytes, tally } = options;
  const served = await ServedLog.create({ dir, runtimes, random, rotateBytes, onFailure: fail });
  const stopLooking = keepLooking(served, options.vitals, fail);
  try {
    options.signal.throwIfAborted();
    await new Round(options, served, random, failing).run();
  } catch (error) {
    // The first error is the cause. Later failures are consequences of it.
    throw failing.signal.aborted ? failing.signal.reason : error;
  } finally {
    failing.abort(new Error("the round is over"));
    stopLooking();
    options.signal.removeEventListener("abort", giveUp);
    await served.dispose();
  }
  tally.add("rounds");
}

function keepLooking(served: ServedLog, vitals: Vitals, fail: (error: unknown) => void) {
  const timer = setInterval(() => {
    try {
      if (served.pid !== null) vitals.look(served.pid);
    } catch (error) {
      fail(error);
    }
  }, SAMPLE_MS);
  return () => clearInterval(timer);
}

class Round {
  readonly #options: RoundOptions;
  readonly #served: ServedLog;
  readonly #random: Random;
  readonly #failing: AbortController;
  readonly #ending = new AbortController();
  readonly #ledger: Ledger;
  readonly #observations = new Observations();
  readonly #heads: KnownHeads = new Map();
  readonly #audit: Audit;

  constructor(options: RoundOptions, served: ServedLog, random: Random, failing: AbortController) {
    this.#options = options;
    this.#served = served;
    this.#random = random;
    this.#failing = failing;
    this.#ledger = new Ledger(options.roundBatchesMax);
    this.#audit = new Audit(this.#ledger, this.#heads);
  }

  async run(): Promise<void> {
    await this.#served.start();
    const clients = this.#startClients();
    // On failure, abort the clients, which would otherwise wait for a dead service.
    await this.#disturb().catch((error) => this.#failing.abort(error));
    this.#ending.abort();
    await this.#orHanging(clients);
    this.#failing.signal.throwIfAborted();
    await this.#checkAll();
  }

  /** @throws {Violation} if the clients do not stop. */
  async #orHanging(clients: Promise<void>): Promise<void> {
    const over = new AbortController();
    const hanging = delay(ANSWER_TIMEOUT_MS, "hanging", { signal: over.signal }).catch(() =>
      "over"
    );
    const outcome = await Promise.race([clients, hanging]);
    over.abort();
    claim(outcome !== "hanging", `a client did not end within ${ANSWER_TIMEOUT_MS} ms`);
  }

  /** Resolves when all clients have ended. */
  #startClients(): Promise<void> {
    const { seed, number, clients, tally } = this.#options;
    const load: Load = {
      seed,
      client: this.#served.client,
      ledger: this.#ledger,
      observations: this.#observations,
      tally,
      ending: this.#ending.signal,
      failing: this.#failing.signal,
    };
    return runClients(load, number, clients, (error) => this.#failing.abort(error));
  }

  /** Runs until the faults end or the log reaches its maximum size. */
  async #disturb(): Promise<void> {
    const failing = this.#failing.signal;
    const { tally, nextDisturbance, loadMsMax } = this.#options;
    const scene: Scene = {
      served: this.#served,
      random: this.#random,
      tally,
      ledger: this.#ledger,
      heads: this.#heads,
      failing,
    };
    while (!this.#ledger.isFull) {
      const disturbance = nextDisturbance();
      if (disturbance === null) return;
      const loadMs = randomInteger(this.#random, Math.min(LOAD_MS_MIN, loadMsMax), loadMsMax);
      await delay(loadMs, undefined, { signal: failing });
      await disturbance(scene);
      await this.#check(this.#audit);
    }
  }

  /** Audits new commits, then checks observations. */
  async #check(audit: Audit): Promise<void> {
    const before = audit.history.length;
    await audit.catchUp(this.#served.client, this.#failing.signal);
    const { tally } = this.#options;
    tally.add("audited", audit.history.length - before);
    tally.add("checked", this.#observations.check(audit.history));
  }

  /** Audits the whole log again from the beginning, after the clients have stopped. */
  async #checkAll(): Promise<void> {
    // Until the service stops, a request that a client abandoned may still be committed.
    await this.#served.stop();
    await this.#served.start();
    await this.#check(this.#audit);
    claim(this.#observations.length === 0, "some observations extend past the end of the log");
    await this.#repeatSome();
    await this.#served.stop();
    await this.#verifyChain(this.#audit.history.length);
    await this.#served.start();
    const audit = new Audit(this.#ledger, this.#heads);
    await this.#check(audit);
    audit.checkHeads();
    claim(
      audit.history.length === this.#audit.history.length,
      "the log changed while it was idle",
    );
    await this.#served.stop();
  }

  /** Resends acknowledged batches, including sealed ones. Each must return its original receipt. */
  async #repeatSome(): Promise<void> {
    const { acknowledged } = this.#ledger;
    const stride = Math.ceil(acknowledged.length / REPEATS_MAX);
    for (let place = 0; place < acknowledged.length; place += stride) {
      const entry = acknowledged[place]!;
      if (entry.batchId.endsWith("lineage")) continue;
      const batch = makeBatch(this.#options.seed, entry.source, entry.batchId);
      const receipt = await this.#served.client.append(batch, { signal: this.#failing.signal });
      this.#ledger.acknowledge(entry, receipt);
      this.#options.tally.add("duplicates");
    }
  }

  async #verifyChain(events: number): Promise<void> {
    const exit = await this.#served.run(["verify", "--chain"]);
    claim(exit.code === 0, `verify --chain: ${exit.stdout} ${describeExit(exit)}`);
    this.#options.tally.add("verifies");
    const { events_checked: checked, orphans, remnants } = JSON.parse(exit.stdout);
    claim(checked === events, `verify --chain checked ${checked} events, expected ${events}`);
    const left = [...orphans, ...remnants];
    claim(left.length === 0, `after a clean shutdown verify reports ${left.join(", ")}`);
  }
}
